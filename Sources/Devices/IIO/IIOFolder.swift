internal import Glibc
package import Platform

/// The attributes of one IIO device in sysfs, and its node.
package struct IIOFolder: Sendable, Hashable {
    /// Where the kernel's files are: another place for tests.
    package struct Root: Sendable, Hashable {
        package var devices = "/sys/bus/iio/devices"
        package var nodes = "/dev"

        package init(devices: String = "/sys/bus/iio/devices", nodes: String = "/dev") {
            self.devices = devices
            self.nodes = nodes
        }
    }

    /// "iio:device0": good until the next plug only.
    package let index: String
    package let path: String
    package let node: String

    /// All that are there.
    package static func all(_ root: Root = Root()) -> [IIOFolder] {
        ((try? Files.list(root.devices)) ?? []).filter { $0.hasPrefix("iio:device") }.map {
            IIOFolder(index: $0, path: "\(root.devices)/\($0)", node: "\(root.nodes)/\($0)")
        }
    }

    /// An attribute without blanks and NULs at its end, which some drivers leave; nil when there is none.
    package func read(_ attribute: String) -> String? {
        guard let bytes = try? Files.read("\(path)/\(attribute)", limit: 4096) else { return nil }
        let whole = bytes.prefix { $0 != 0 }
        let end = whole.lastIndex { $0 > 0x20 }.map { $0 + 1 } ?? whole.startIndex
        return String(decoding: whole[..<end], as: UTF8.self)
    }

    package func number(_ attribute: String) -> Double? {
        read(attribute).flatMap { DecimalText.double(Array($0.utf8)[...]) }
    }

    /// Writes an attribute in one call.
    package func write(_ attribute: String, _ value: String) throws(Errno) {
        let number = try throwingErrno { open("\(path)/\(attribute)", O_WRONLY | O_CLOEXEC) }
        let file = FileDescriptor(owning: number)
        try file.writeAll(Array(value.utf8))
    }

    package func has(_ attribute: String) -> Bool { Files.exists("\(path)/\(attribute)") }

    package func list(_ folder: String) -> [String] { (try? Files.list("\(path)/\(folder)")) ?? [] }

    package var name: String { read("name") ?? index }

    // MARK: Identity

    /// What stays the same after a replug and a restart: a label, a serial number, or the place on the bus.
    package var identity: String {
        if let label = read("label"), !label.isEmpty { return "label:\(label)" }
        if let serial { return "serial:\(serial)/\(name)" }
        return "path:\(port)/\(name)"
    }

    /// All words by which a configuration may name it.
    package var names: [String] {
        [read("label"), serial, serial.map { "\($0)/\(name)" }, name, port, "\(port)/\(name)", identity]
            .compactMap { $0 }.filter { !$0.isEmpty }
    }

    /// The serial number of the device that it is a part of: a USB device's, or a HID device's own.
    private var serial: String? {
        var folder = real
        while folder.hasPrefix("/sys/devices/"), folder.count > "/sys/devices/".count {
            for attribute in ["serial", "serial_number"] {
                if let bytes = try? Files.read("\(folder)/\(attribute)", limit: 256) {
                    let text = String(decoding: bytes.prefix { $0 > 0x20 }, as: UTF8.self)
                    if !text.isEmpty { return text }
                }
            }
            if let bytes = try? Files.read("\(folder)/uevent", limit: 4096) {
                let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
                if let line = lines.first(where: { $0.hasPrefix("HID_UNIQ=") }), line.count > 9 {
                    return String(line.dropFirst(9))
                }
            }
            folder = FilePath.parent(of: folder)
        }
        return nil
    }

    /// The place on the bus, without the numbers that count plugs.
    private var port: String {
        let parts = real.split(separator: "/").filter { $0 != "sys" && $0 != "devices" && !$0.hasPrefix("iio:device") }
        return parts.map { Self.withoutCounters(String($0)) }.joined(separator: "/")
    }

    private var real: String {
        guard let text = realpath(path, nil) else { return path }
        defer { free(text) }
        return String(cString: text)
    }

    /// "HID-SENSOR-200073.3.auto" and "0003:16C0:27DB.0002" end with a count of plugs.
    static func withoutCounters(_ part: String) -> String {
        let words = part.split(separator: ".", omittingEmptySubsequences: false)
        if words.count == 3, words[2] == "auto", Int(words[1]) != nil { return String(words[0]) }
        let isHID = words.count == 2 && words[0].split(separator: ":").count == 3
        if isHID, words[1].count == 4, Int(words[1], radix: 16) != nil { return String(words[0]) }
        return part
    }
}
