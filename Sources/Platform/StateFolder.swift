internal import Glibc

/// Where a program keeps its state and its episodes.
///
/// Nothing is written outside of it.
package enum StateFolder {
    /// `DOWNBEAT_HOME`, else `STATE_DIRECTORY` (set by systemd), else `$XDG_DATA_HOME/downbeat`, else
    /// `~/.local/share/downbeat`.
    package static var path: String {
        if let home = environment("DOWNBEAT_HOME") { return home }
        if let state = environment("STATE_DIRECTORY") { return state }
        if let data = environment("XDG_DATA_HOME") { return "\(data)/downbeat" }
        return "\(environment("HOME") ?? "/var/lib")/.local/share/downbeat"
    }

    /// `DOWNBEAT_CONFIG`, else `$XDG_CONFIG_HOME/downbeat/<name>`, else `~/.config/downbeat/<name>`, else
    /// `/etc/downbeat/<name>`; nil when none of them exists (`DOWNBEAT_CONFIG` is given back as it is).
    package static func configuration(named name: String) -> String? {
        if let path = environment("DOWNBEAT_CONFIG") { return path }
        let user = environment("XDG_CONFIG_HOME") ?? environment("HOME").map { "\($0)/.config" }
        return ([user.map { "\($0)/downbeat/\(name)" }, "/etc/downbeat/\(name)"] as [String?])
            .compactMap { $0 }.first { Files.exists($0) }
    }

    /// A variable that is set and not empty.
    package static func environment(_ name: String) -> String? {
        guard let value = getenv(name) else { return nil }
        let text = String(cString: value)
        return text.isEmpty ? nil : text
    }

    /// The machine's name, as `hostname` prints it.
    package static var machineName: String {
        var buffer = [CChar](repeating: 0, count: 256)
        guard gethostname(&buffer, buffer.count - 1) == 0 else { return "localhost" }
        return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
