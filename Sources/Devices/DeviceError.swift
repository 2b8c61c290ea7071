package import Protocol

/// Why a device can't do what was asked, in one sentence with cause and cure.
package struct DeviceError: Error, Sendable, CustomStringConvertible {
    package enum Code: Sendable, Hashable {
        case notFound, busy, accessDenied, unsupported, disconnected, timedOut, inputOutput
    }

    package let code: Code
    package let stream: StreamID
    /// "camera /dev/video0 is held by process 712 (cheese)".
    package let cause: String
    /// "close that program".
    package let cure: String

    package init(_ code: Code, stream: StreamID, cause: String, cure: String) {
        self.code = code
        self.stream = stream
        self.cause = cause
        self.cure = cure
    }

    package var description: String { "\(stream): \(cause); \(cure)" }
}
