internal import CZMQ
internal import Glibc
internal import Platform

/// A failed call of libzmq with what was being done.
package struct ZMQError: Error, Sendable, Hashable, CustomStringConvertible {
    /// An errno, or one of the library's own numbers.
    package let code: Int32
    package let operation: String

    package init(code: Int32, _ operation: String) {
        self.code = code
        self.operation = operation
    }

    /// The calling thread's error; read it in the very next expression after the call that failed.
    ///
    /// The corresponding C function is `zmq_errno`.
    static func current(_ operation: String) -> ZMQError { ZMQError(code: zmq_errno(), operation) }

    /// Nothing to receive, or no room to send.
    package var isAgain: Bool { code == EAGAIN }

    /// The connection that a routing id named is gone.
    package var isUnreachable: Bool { code == EHOSTUNREACH }

    package var isAddressInUse: Bool { code == EADDRINUSE }

    /// The library's text.
    ///
    /// The corresponding C function is `zmq_strerror`.
    package var description: String {
        "\(operation): \(zmq_strerror(code).map { String(cString: $0) } ?? "error \(code)")"
    }
}
