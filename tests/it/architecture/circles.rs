//! Circles: the bot's modules that have one parent import one another in one direction only. Tests may
//! import as they like.

use std::collections::{BTreeMap, BTreeSet};

use super::{BOT, Source, none, sources, starts_of, word};

/// A module or what is in one, from the root: `turn`, `ask`, `TurnAnswer`.
type Names = Vec<String>;
/// Which module imports from which, of modules that have one parent.
type Imports = BTreeSet<(String, String)>;

/// The names of a file's own module.
fn module_of(source: &Source) -> Names {
    let names = source.inside().map(|name| name.trim_end_matches(".rs"));
    let names = names.filter(|name| *name != "lib" && *name != "main");
    names.map(str::to_owned).collect()
}

/// All paths in `a::{b, c::{d as e}}`: `a::b` and `a::c::d`.
fn expanded(tree: &str) -> Vec<Names> {
    let tree = tree.trim();
    let Some((stem, group)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or_default();
        return vec![
            path.split("::")
                .map(|name| name.trim().to_owned())
                .collect(),
        ];
    };
    let stem: Names = stem
        .split("::")
        .map(|name| name.trim().to_owned())
        .collect();
    let stem = &stem[..stem.len() - 1];
    let group = group.rsplit_once('}').map_or(group, |(group, _)| group);
    let mut depth = 0;
    let parts = group.split(|next| {
        match next {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        next == ',' && depth == 0
    });
    let parts = parts.filter(|part| !part.trim().is_empty());
    let paths = parts.flat_map(expanded);
    paths.map(|path| [stem, &path].concat()).collect()
}

/// The paths of a file's `use` lines.
fn used(code: &str) -> Vec<Names> {
    let uses = starts_of(code, "use ").filter_map(|at| code[at + 4..].split(';').next());
    uses.flat_map(expanded).collect()
}

/// The paths from the root or from parents in the rest of its code.
fn written_out(code: &str) -> Vec<Names> {
    let starts = ["crate::", "super::"].map(|root| starts_of(code, root));
    let paths = starts.into_iter().flatten().map(|at| {
        let end = code[at..].find(|next: char| !(next.is_alphanumeric() || "_:".contains(next)));
        let path = end.map_or(&code[at..], |end| &code[at..at + end]);
        path.split("::").map(|name| word(name).to_owned()).collect()
    });
    paths.collect()
}

/// A path from the root; none if it leads to another package, or is a name in the file itself.
fn from_root(path: &[String], module: &[String], modules: &BTreeSet<Names>) -> Option<Names> {
    let climbed = path.iter().take_while(|name| *name == "super").count();
    let start = match path.first()?.as_str() {
        "crate" => return Some(path[1..].to_vec()),
        "self" => return Some([module, &path[1..]].concat()),
        "super" => &module[..module.len().checked_sub(climbed)?],
        _ => module,
    };
    let path = [start, &path[climbed..]].concat();
    (climbed > 0 || modules.contains(&path[..=module.len()])).then_some(path)
}

/// What the children of a module import from one another, also by names that the module takes
/// from them.
fn imports_among(
    parent: &[String],
    files: &[(Names, String)],
    modules: &BTreeSet<Names>,
) -> Imports {
    let below = |path: &Names| path.strip_prefix(parent)?.first().cloned();
    let mut taken = BTreeMap::new();
    for (_, code) in files.iter().filter(|(module, _)| module == parent) {
        for path in used(code) {
            let path = from_root(&path, parent, modules);
            let child = path.as_ref().and_then(below);
            if let Some((child, name)) = child.zip(path.as_ref().and_then(|path| path.last())) {
                taken.insert(name.clone(), child);
            }
        }
    }
    let mut imports = Imports::new();
    for (module, code) in files {
        let Some(from) = below(module) else { continue };
        for path in used(code).into_iter().chain(written_out(code)) {
            let path = from_root(&path, module, modules);
            let Some(name) = path.as_ref().and_then(below) else {
                continue;
            };
            let to = taken.get(&name).unwrap_or(&name);
            let is_child = modules.contains(&[parent, std::slice::from_ref(to)].concat());
            if is_child && *to != from {
                imports.insert((from.clone(), to.clone()));
            }
        }
    }
    imports
}

/// What is left once nothing is taken that leads out of circles or into them.
fn circles(mut imports: Imports) -> Imports {
    loop {
        let before = imports.len();
        let importing: BTreeSet<String> = imports.iter().map(|(from, _)| from.clone()).collect();
        imports.retain(|(_, to)| importing.contains(to));
        let imported: BTreeSet<String> = imports.iter().map(|(_, to)| to.clone()).collect();
        imports.retain(|(from, _)| imported.contains(from));
        if imports.len() == before {
            return imports;
        }
    }
}

/// The circles among the top-level modules, and among the children of every module.
fn found_in(sources: &[Source]) -> Vec<String> {
    let production = sources.iter().filter(|source| !source.is_test());
    let files: Vec<(Names, String)> = production
        .map(|source| (module_of(source), source.production().to_owned()))
        .collect();
    let modules: BTreeSet<Names> = files.iter().map(|(module, _)| module.clone()).collect();
    let found = modules.iter().flat_map(|parent| {
        let circles = circles(imports_among(parent, &files, &modules));
        let place = parent.join("::");
        circles
            .into_iter()
            .map(move |(from, to)| format!("{place}: {from} imports {to}"))
    });
    found.collect()
}

#[test]
fn no_modules_import_in_circles() {
    none(
        &found_in(&sources(BOT.folder)),
        "move what both need to the lower one, or to a module of its own",
    );
}

#[test]
fn circles_are_found_in_every_form() {
    #[track_caller]
    fn check(files: &[(&str, &str)], expected: &[&str]) {
        let root = [Source::new("src/lib.rs", "")];
        let files = files.iter().map(|(path, text)| Source::new(*path, text));
        let files: Vec<Source> = root.into_iter().chain(files).collect();
        assert_eq!(found_in(&files), expected);
    }
    check(
        &[
            ("src/a.rs", "use crate::{b::X};"),
            ("src/b.rs", "crate::a::y()"),
        ],
        &[": a imports b", ": b imports a"],
    );
    // Through a third one, from below, and beside what is in no circle.
    check(
        &[
            ("src/a.rs", "use b::{self, X as Y};"),
            ("src/a/b.rs", "use super::c::{d::E, F};"),
            ("src/a/c.rs", "use super::D;"),
            ("src/a/d.rs", ""),
            ("src/a/d/e.rs", "use super::super::{b, low};"),
            ("src/a/low.rs", "use crate::model;"),
        ],
        &[],
    );
    check(
        &[
            ("src/a.rs", "pub use d::D;\nuse c::C;"),
            ("src/a/b.rs", "use super::C;"),
            ("src/a/c.rs", "super::D::new()"),
            ("src/a/d.rs", "use super::b::{B};\nuse super::low;"),
            (
                "src/a/low.rs",
                "use crate::model;\n#[cfg(test)]\nuse super::b::B;",
            ),
        ],
        &["a: b imports c", "a: c imports d", "a: d imports b"],
    );
}
