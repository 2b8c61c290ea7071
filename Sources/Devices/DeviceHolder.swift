internal import Glibc
internal import Platform

/// Which processes hold a device node open.
package struct DeviceHolder: Sendable, Hashable, CustomStringConvertible {
    package var pid: Int32
    package var name: String

    package init(pid: Int32, name: String) {
        self.pid = pid
        self.name = name
    }

    package var description: String { "process \(pid) (\(name))" }

    /// Looks through /proc/*/fd; those of other users only root can see.
    ///
    /// - Parameters:
    ///   - path: the node.
    ///   - except: a descriptor of this process that doesn't count.
    /// - Returns: none when nobody holds it, or nobody that can be seen.
    package static func of(_ path: String, except: Int32? = nil) -> [DeviceHolder] {
        let own = getpid()
        let processes = ((try? Files.list("/proc")) ?? []).compactMap { Int32($0) }
        return processes.filter { pid in
            let descriptors = (try? Files.list("/proc/\(pid)/fd")) ?? []
            return descriptors.contains { number in
                if pid == own, let except, number == String(except) { return false }
                return target(of: "/proc/\(pid)/fd/\(number)") == path
            }
        }.map { pid in DeviceHolder(pid: pid, name: pid == own ? "this program itself" : name(of: pid)) }
    }

    /// The holders in words for an error: "process 712 (cheese)", or that they can't be seen.
    package static func words(for path: String, except: Int32? = nil) -> String {
        let holders = of(path, except: except)
        return holders.isEmpty
            ? "another program that can't be seen from here"
            : holders.map(\.description).joined(separator: " and ")
    }

    private static func target(of link: String) -> String? {
        var buffer = [UInt8](repeating: 0, count: 512)
        let count = buffer.withUnsafeMutableBytes { raw in
            raw.baseAddress.map { readlink(link, $0, raw.count) } ?? -1
        }
        guard count > 0 else { return nil }
        return String(decoding: buffer.prefix(count), as: UTF8.self)
    }

    private static func name(of pid: Int32) -> String {
        let bytes = (try? Files.read("/proc/\(pid)/comm", limit: 64)) ?? []
        let text = String(decoding: bytes.prefix { $0 != 0x0A }, as: UTF8.self)
        return text.isEmpty ? "unknown" : text
    }
}
