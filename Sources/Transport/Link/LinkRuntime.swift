internal import Platform

/// The thread and the ZeroMQ context that the connections of one coordinator share.
///
/// It is never ended: a program's exit doesn't wait for it.
package final class LinkRuntime: Sendable {
    package static let shared = LinkRuntime()

    let context = ZMQContext()
    let loop = EventLoop(name: "links")

    package init() {}
}
