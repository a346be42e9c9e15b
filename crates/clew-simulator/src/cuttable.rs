//! TCP connections that can be cut from inside a request: the client sees the
//! connection end without an answer.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use axum::extract::connect_info::Connected;
use axum::response::Response;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

/// The switch that cuts one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct CutSwitch(Arc<AtomicBool>);

impl CutSwitch {
    /// Cuts the connection: the next write, which is that of the response, fails, and none of
    /// it is sent.
    pub(super) fn cut(&self) -> Response {
        self.0.store(true, Ordering::Relaxed);
        Response::default()
    }

    /// Whether it is cut.
    pub(super) fn is_cut(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A listener whose connections can be cut.
#[derive(Debug)]
pub(super) struct CuttableListener(pub(super) TcpListener);

impl Listener for CuttableListener {
    type Io = CuttableStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        let (stream, address) = Listener::accept(&mut self.0).await;
        // Small frames should not wait for each other; if this fails, they are only slower.
        let _ = stream.set_nodelay(true);
        let switch = CutSwitch::default();
        (CuttableStream { stream, switch }, address)
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.0.local_addr()
    }
}

/// A stream that fails once its connection has been cut.
#[derive(Debug)]
pub(super) struct CuttableStream {
    stream: TcpStream,
    switch: CutSwitch,
}

impl CuttableStream {
    fn check(&self) -> io::Result<()> {
        if self.switch.is_cut() {
            Err(io::ErrorKind::ConnectionReset.into())
        } else {
            Ok(())
        }
    }
}

impl Connected<IncomingStream<'_, CuttableListener>> for CutSwitch {
    fn connect_info(stream: IncomingStream<'_, CuttableListener>) -> Self {
        stream.io().switch.clone()
    }
}

impl AsyncRead for CuttableStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for CuttableStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
