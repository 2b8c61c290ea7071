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

/// A device behind a Unix socket of whole packets, which stands for a BLE link: one packet is one notification, and one
/// that comes is one write.
final class PacketEdge: EmulatorEdge {
    private let path: String
    private var listener: OpenFile?
    private var peer: OpenFile?

    init(path: String) { self.path = path }

    deinit { unlink(path) }

    var place: String { "packets at \(path)" }

    func plug(_ isIn: Bool) throws {
        guard isIn else {
            unlink(path)
            peer = nil
            listener = nil
            return
        }
        guard (listener?.number ?? -1) < 0 else { return }
        unlink(path)
        listener = OpenFile(try UnixSocket.listen(path))
    }

    func send(_ bytes: [UInt8]) {
        accept()
        let number = (peer?.number ?? -1)
        guard number >= 0 else { return }
        let done = bytes.withUnsafeBytes { Glibc.send(number, $0.baseAddress, $0.count, Int32(MSG_DONTWAIT)) }
        if done < 0, errno == EPIPE || errno == ECONNRESET { peer = nil }
    }

    func receive() -> [[UInt8]] {
        accept()
        var packets: [[UInt8]] = []
        var buffer = [UInt8](repeating: 0, count: 1024)
        while (peer?.number ?? -1) >= 0 {
            let count = recv((peer?.number ?? -1), &buffer, buffer.count, Int32(MSG_DONTWAIT))
            if count > 0 {
                packets.append(Array(buffer.prefix(count)))
                continue
            }
            if count == 0 { peer = nil }
            break
        }
        return packets
    }

    /// A new one takes the place of the old one, as when a host crashed and comes back.
    private func accept() {
        let number = (listener?.number ?? -1)
        guard number >= 0 else { return }
        let new = clinux_accept_cloexec(number)
        if new >= 0 { peer = OpenFile(FileDescriptor(owning: new)) }
    }
}

/// An open file that an optional can hold.
final class OpenFile: Sendable {
    private let file: FileDescriptor
    var number: Int32 { file.rawValue }

    init(_ file: consuming FileDescriptor) { self.file = file }

    func write(_ text: String) { try? file.writeAll(Array(text.utf8)) }
}

/// Unix sockets of whole packets.
enum UnixSocket {
    static func listen(_ path: String) throws(SystemError) -> FileDescriptor {
        let what = "listening at \(path)"
        let number = socket(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        guard number >= 0 else { throw SystemError(.current, what) }
        let file = FileDescriptor(owning: number)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        guard bytes.count < MemoryLayout.size(ofValue: address.sun_path) else {
            throw SystemError(Errno(rawValue: ENAMETOOLONG), what)
        }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        let failed = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(number, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) != 0
            }
        }
        if failed { throw SystemError(.current, what) }
        guard Glibc.listen(number, 4) == 0 else { throw SystemError(.current, what) }
        return file
    }
}
