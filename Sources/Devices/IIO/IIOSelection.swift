/// Which IIO device a configuration means.
///
/// Pure.
package enum IIOSelection {
    case found(IIOFolder)
    case missing(cause: String, cure: String)
    case refused(cause: String, cure: String)

    package init(_ wanted: String, among folders: [IIOFolder]) {
        guard !wanted.hasPrefix("iio:device"), !wanted.hasPrefix("/dev/iio:device") else {
            self = .refused(
                cause: "'\(wanted)' is another sensor after the next plug", cure: "name it by \(Self.list(folders))")
            return
        }
        let exact = folders.filter { $0.identity == wanted }
        let matches = exact.isEmpty ? folders.filter { $0.names.contains(wanted) } : exact
        switch matches.count {
        case 1: self = .found(matches[0])
        case 0:
            self = .missing(
                cause: "no IIO sensor '\(wanted)' is attached",
                cure: folders.isEmpty ? "plug it in, or load its driver" : "name one of \(Self.list(folders))")
        default:
            self = .refused(
                cause: "\(matches.count) IIO sensors are called '\(wanted)'",
                cure: "name it by \(Self.list(matches))")
        }
    }

    private static func list(_ folders: [IIOFolder]) -> String {
        folders.isEmpty ? "its identity" : folders.map { "'\($0.identity)'" }.joined(separator: " or ")
    }
}
