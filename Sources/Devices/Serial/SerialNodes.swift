internal import Glibc
internal import Platform

/// The serial ports of this machine.
enum SerialNodes {
    /// Links that name the hardware, best first: by its serial number, by its place on the bus.
    static let folders = ["/dev/serial/by-id", "/dev/serial/by-path"]

    /// Each link with the node that it points to.
    static func links() -> [(link: String, node: String)] {
        folders.flatMap { folder in
            ((try? Files.list(folder)) ?? []).compactMap { name in
                resolve("\(folder)/\(name)").map { ("\(folder)/\(name)", $0) }
            }
        }
    }

    /// The node that a path or a link means; nil when there is none now.
    static func resolve(_ path: String) -> String? {
        guard path.hasPrefix("/"), let real = realpath(path, nil) else { return nil }
        defer { free(real) }
        return String(cString: real)
    }

    /// The link by serial number where the node has one, so that the same device has one name.
    static func identity(of device: String) -> String {
        guard isIndex(device), let node = resolve(device) else { return device }
        return links().first { $0.node == node }?.link ?? device
    }

    /// What is wrong with naming a port like this; nil when nothing is.
    static func warning(for device: String) -> String? {
        guard isIndex(device) else { return nil }
        let better = identity(of: device)
        let advice = better == device ? "a link below /dev/serial/by-id" : better
        return "\(device) may be another device after a restart; name it by \(advice)"
    }

    private static func isIndex(_ device: String) -> Bool {
        device.hasPrefix("/dev/tty") && device.last?.isNumber == true
    }
}
