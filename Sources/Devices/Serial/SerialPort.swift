internal import CLinux
internal import Glibc
package import Platform

/// An open serial line: raw bytes, 8N1, no flow control, never waiting.
///
/// One owner, one thread. The line is locked against a second reader, who would take every other byte away.
package final class SerialPort {
    /// How to open it.
    package struct Settings: Sendable, Hashable {
        package var baud: UInt32
        /// The state of the lines after opening; nil leaves them to the driver (which raises both).
        package var dtr: Bool?
        package var rts: Bool?

        package init(baud: UInt32, dtr: Bool? = nil, rts: Bool? = nil) {
            self.baud = baud
            self.dtr = dtr
            self.rts = rts
        }
    }

    private let file: FileDescriptor

    /// Opens and configures.
    ///
    /// `busy` when another program holds the line, `ERANGE` when the hardware can't do the baud rate. The corresponding
    /// C functions are `open`, `flock` and `ioctl` (TCSETS2, TIOCEXCL, TIOCMBIS).
    package init(path: String, _ settings: Settings) throws(Errno) {
        let number = try throwingErrno { Glibc.open(path, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC) }
        file = FileDescriptor(owning: number)
        // The flag alone doesn't keep root out.
        if flock(number, LOCK_EX | LOCK_NB) != 0 {
            let error = Errno.current
            throw error == .again ? .busy : error
        }
        _ = ioctl(number, UInt(TIOCEXCL))
        let failed = clinux_serial_raw(number, settings.baud)
        guard failed == 0 else { throw Errno(rawValue: failed) }
        // A pseudo-terminal has no such lines; nothing depends on them there.
        if settings.dtr != nil || settings.rts != nil {
            _ = clinux_serial_lines(number, settings.dtr == false ? 0 : 1, settings.rts == false ? 0 : 1)
        }
    }

    // A pseudo-terminal keeps the flag as long as its other end is open.
    deinit { _ = ioctl(file.rawValue, UInt(TIOCNXCL)) }

    /// For waiting only.
    package var descriptor: Int32 { file.rawValue }

    /// What is there now, at most `count` bytes; empty when nothing is.
    ///
    /// Throws `noDevice` when the line is gone.
    package func read(upTo count: Int) throws(Errno) -> [UInt8] {
        do throws(Errno) {
            let bytes = try file.read(upTo: count)
            // With VMIN 0 an idle line reads as empty; a line that was hung up does too, and has POLLHUP.
            if bytes.isEmpty, isHungUp { throw .noDevice }
            return bytes
        } catch {
            switch error {
            case .again: return []
            case .inputOutput, Errno(rawValue: ENXIO): throw .noDevice
            default: throw error
            }
        }
    }

    /// Sends some bytes; a line that takes none for now is an error, since commands are short.
    package func write(_ bytes: [UInt8]) throws(Errno) { try file.writeAll(bytes) }

    private var isHungUp: Bool {
        var state = pollfd(fd: file.rawValue, events: Int16(POLLIN), revents: 0)
        return poll(&state, 1, 0) > 0 && Int32(state.revents) & (POLLHUP | POLLERR | POLLNVAL) != 0
    }
}
