//! Pages and plots for people: one self-contained HTML page with tables and static
//! SVG. No script, nothing fetched, every text escaped; light and dark by the
//! reader's preference.
//!
//! Invariant: `plot` imports no other module of the bot and does no IO: values in,
//! text out.

mod axis;
mod bars;
mod chart;
mod markup;
mod page;
mod table;

pub use axis::{Axis, Scale};
pub use bars::Bars;
pub use chart::{Chart, Series};
pub use markup::visible;
pub use page::{Page, Part, Section};
pub use table::Table;
