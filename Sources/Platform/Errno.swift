internal import Glibc

/// A system error number.
package struct Errno: Error, RawRepresentable, Sendable, Hashable, CustomStringConvertible {
    package let rawValue: Int32

    package init(rawValue: Int32) { self.rawValue = rawValue }

    /// The calling thread's errno; read it in the very next expression after the call that failed.
    package static var current: Errno { Errno(rawValue: errno) }

    package static let noSuchFile = Errno(rawValue: ENOENT)
    package static let exists = Errno(rawValue: EEXIST)
    package static let again = Errno(rawValue: EAGAIN)
    package static let interrupted = Errno(rawValue: EINTR)
    package static let busy = Errno(rawValue: EBUSY)
    package static let accessDenied = Errno(rawValue: EACCES)
    package static let notPermitted = Errno(rawValue: EPERM)
    package static let noSpace = Errno(rawValue: ENOSPC)
    package static let noDevice = Errno(rawValue: ENODEV)
    package static let invalidArgument = Errno(rawValue: EINVAL)
    package static let brokenPipe = Errno(rawValue: EPIPE)
    package static let timedOut = Errno(rawValue: ETIMEDOUT)
    package static let addressInUse = Errno(rawValue: EADDRINUSE)
    package static let inputOutput = Errno(rawValue: EIO)

    /// The C library's text.
    ///
    /// The corresponding C function is `strerror_r`.
    package var description: String {
        var buffer = [CChar](repeating: 0, count: 256)
        let failed = strerror_r(rawValue, &buffer, buffer.count)
        guard failed == 0 else { return "error \(rawValue)" }
        return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}

/// Runs a call that answers -1 on failure, repeats it on EINTR, and turns the failure into an `Errno`.
@discardableResult
package func throwingErrno<T: FixedWidthInteger>(
    retryOnInterrupt: Bool = true, _ call: () -> T
) throws(Errno) -> T {
    while true {
        let result = call()
        if result != -1 { return result }
        let error = Errno.current
        if retryOnInterrupt && error == .interrupted { continue }
        throw error
    }
}
