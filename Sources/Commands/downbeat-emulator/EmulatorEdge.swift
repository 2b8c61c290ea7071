internal import CLinux
internal import Glibc
internal import Platform

/// Where the bytes of an emulated device leave: the device's end of a real interface.
///
/// Used by one thread; nothing in it waits.
protocol EmulatorEdge: AnyObject {
    /// For a person: where it is.
    var place: String { get }

    /// Sends one packet; what the other side doesn't take is lost, as on the real interface.
    func send(_ bytes: [UInt8])

    /// What the other side has sent since the last call, packet by packet.
    func receive() -> [[UInt8]]

    /// Plugs it in or out.
    func plug(_ isIn: Bool) throws
}

/// A serial device: a pseudo-terminal behind a link of a fixed name.
///
/// Plugged out, link and terminal are gone. The terminal's other end isn't kept open here: a reader that looks for who
/// holds the line must not find the device itself.
final class SerialEdge: EmulatorEdge {
    private let link: String
    private var master: OpenFile?

    init(link: String) { self.link = link }

    deinit { unlink(link) }

    var place: String { "serial line \(link)" }

    func plug(_ isIn: Bool) throws {
        guard isIn else {
            unlink(link)
            master = nil
            return
        }
        guard number < 0 else { return }
        var number: Int32 = -1
        var path = [CChar](repeating: 0, count: 128)
        let failed = clinux_pty(&number, &path, path.count)
        guard failed == 0 else { throw SystemError(Errno(rawValue: failed), "making a pseudo-terminal") }
        master = OpenFile(FileDescriptor(owning: number))
        let node = String(decoding: path.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        // Only a link of ours is replaced.
        var status = stat()
        if lstat(link, &status) == 0, status.st_mode & S_IFMT == S_IFLNK { unlink(link) }
        guard symlink(node, link) == 0 else { throw SystemError(.current, "making the link \(link)") }
    }

    func send(_ bytes: [UInt8]) {
        // With nobody there the terminal's own buffer fills up, and then the bytes are gone, as on a wire.
        bytes.withUnsafeBytes { _ = write(number, $0.baseAddress, $0.count) }
    }

    func receive() -> [[UInt8]] {
        var buffer = [UInt8](repeating: 0, count: 512)
        let count = read(number, &buffer, buffer.count)
        return count > 0 ? [Array(buffer.prefix(count))] : []
    }

    private var number: Int32 { master?.number ?? -1 }
}

/// An open file that an optional can hold.
final class OpenFile: Sendable {
    private let file: FileDescriptor
    var number: Int32 { file.rawValue }

    init(_ file: consuming FileDescriptor) { self.file = file }

    func write(_ text: String) { try? file.writeAll(Array(text.utf8)) }
}
