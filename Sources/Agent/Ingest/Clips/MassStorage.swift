internal import Glibc
internal import Platform

/// Cards of cameras that are mounted as disks.
enum MassStorage {
    struct Card: Hashable {
        var folder: String
        /// Of the USB device; nil when it isn't known.
        var serial: String?
    }

    /// What the kernel has mounted from USB, and the folders of the configuration, as far as they look like a camera's.
    static func cards(beside folders: [String], mountinfo: String = "/proc/self/mountinfo", sys: String = "/sys")
        -> [Card]
    {
        let lines = ((try? Files.read(mountinfo, limit: 4 << 20)) ?? []).split(separator: 0x0A)
        let mounted = lines.compactMap { line -> Card? in
            guard let mount = Mount(String(decoding: line, as: UTF8.self)) else { return nil }
            guard let device = target(of: "\(sys)/dev/block/\(mount.device)"), device.contains("/usb") else {
                return nil
            }
            return Card(folder: mount.folder, serial: serial(above: device, sys: sys))
        }
        let named = folders.flatMap { folder in
            // The folder itself, or what is mounted below it.
            [folder] + ((try? Files.list(folder)) ?? []).map { "\(folder)/\($0)" }
        }.map { Card(folder: $0, serial: nil) }
        var seen: Set<String> = []
        return (mounted + named).filter { Files.isFolder("\($0.folder)/DCIM") && seen.insert($0.folder).inserted }
    }

    /// One line of mountinfo: `36 35 8:17 / /media/card rw - vfat /dev/sdb1 rw`, blanks as `\040`.
    struct Mount: Hashable {
        let device: String
        let folder: String

        init?(_ line: String) {
            let fields = line.split(separator: " ", omittingEmptySubsequences: false)
            guard fields.count >= 7, fields[2].contains(":"), fields[3] == "/" else { return nil }
            device = String(fields[2])
            folder = Self.plain(fields[4])
        }

        private static func plain(_ text: Substring) -> String {
            let bytes = Array(text.utf8)
            var (plain, index): ([UInt8], Int) = ([], 0)
            while index < bytes.count {
                if bytes[index] == 0x5C, index + 3 < bytes.count,
                    let value = UInt8(String(decoding: bytes[(index + 1)...(index + 3)], as: UTF8.self), radix: 8)
                {
                    plain.append(value)
                    index += 4
                } else {
                    plain.append(bytes[index])
                    index += 1
                }
            }
            return String(decoding: plain, as: UTF8.self)
        }
    }

    private static func target(of link: String) -> String? {
        guard let path = realpath(link, nil) else { return nil }
        defer { free(path) }
        return String(cString: path)
    }

    private static func serial(above device: String, sys: String) -> String? {
        var folder = device
        for _ in 0..<16 {
            if let bytes = try? Files.read("\(folder)/serial", limit: 256) {
                let text = String(decoding: bytes.prefix { $0 > 0x20 }, as: UTF8.self)
                if !text.isEmpty { return text }
            }
            folder = FilePath.parent(of: folder)
            if folder == "/" || folder == sys || folder == "." { return nil }
        }
        return nil
    }
}
