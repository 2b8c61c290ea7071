internal import Glibc
internal import Platform

/// The USB device behind a serial port, found through /sys.
enum USBPort {
    /// `USBDEVFS_RESET`, `_IO('U', 20)`.
    private static let resetRequest: UInt = 0x5514

    /// Resets the device on its bus; false when there is none or it isn't allowed.
    static func reset(_ path: String) -> Bool {
        guard let node = realpath(path, nil) else { return false }
        defer { free(node) }
        let name = FilePath.name(of: String(cString: node))
        guard var folder = realPath("/sys/class/tty/\(name)/device") else { return false }
        // The interface's folder lies in that of its device.
        for _ in 0..<4 {
            if let bus = number("\(folder)/busnum"), let device = number("\(folder)/devnum") {
                let file = "/dev/bus/usb/\(padded(bus))/\(padded(device))"
                guard let usb = try? FileDescriptor(path: file, flags: O_WRONLY) else { return false }
                return ioctl(usb.rawValue, resetRequest, 0) == 0
            }
            folder = FilePath.parent(of: folder)
        }
        return false
    }

    private static func realPath(_ path: String) -> String? {
        guard let real = realpath(path, nil) else { return nil }
        defer { free(real) }
        return String(cString: real)
    }

    private static func number(_ path: String) -> Int? {
        guard let bytes = try? Files.read(path, limit: 64) else { return nil }
        return Int(String(decoding: bytes.prefix { $0 > 0x20 }, as: UTF8.self))
    }

    private static func padded(_ number: Int) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(0, 3 - text.count)) + text
    }
}
