internal import CZMQ
internal import Platform
internal import Synchronization

/// The I/O thread of libzmq and what its sockets share; an `inproc` name and a ZAP handler belong to one context.
///
/// Concurrency: the library's context is thread-safe. Every socket holds its context, so it can't end before them.
package final class ZMQContext: Sendable {
    private struct Handle: @unchecked Sendable {  // The library guards it.
        let pointer: UnsafeMutableRawPointer
    }

    private let handle: Handle
    private let nextName = Atomic<UInt64>(0)
    private let ended = Mutex(false)

    /// The corresponding C function is `zmq_ctx_new`.
    package init() {
        // It fails only when memory or descriptors are gone; there is nobody to report it to who could go on.
        guard let pointer = zmq_ctx_new() else { preconditionFailure("zmq_ctx_new: no memory or descriptors left") }
        handle = Handle(pointer: pointer)
        // The default of 1023 sockets is few for a coordinator of many hosts with a monitor for each socket.
        zmq_ctx_set(pointer, ZMQ_MAX_SOCKETS, 8192)
    }

    deinit {
        guard !ended.withLock({ $0 }) else { return }
        // It waits for sockets that linger; nobody's thread may wait with it.
        let loop = EventLoop(name: "zmq-end")
        loop.perform { [handle] in
            zmq_ctx_term(handle.pointer)
            loop.stop()
        }
    }

    var pointer: UnsafeMutableRawPointer { handle.pointer }

    /// A name in this context that nothing else has.
    func uniqueEndpoint(_ word: String) -> String {
        "inproc://\(word)-\(nextName.add(1, ordering: .relaxed).newValue)"
    }

    /// Waits, on a thread of its own, until all sockets are closed and have sent what they linger for.
    ///
    /// Close every socket first, else it waits for that. The corresponding C function is `zmq_ctx_term`.
    package func terminate() async {
        let first = ended.withLock { ended in
            defer { ended = true }
            return !ended
        }
        guard first else { return }
        let loop = EventLoop(name: "zmq-end")
        try? await loop.run { [handle] in _ = zmq_ctx_term(handle.pointer) }
        loop.stop()
    }
}
