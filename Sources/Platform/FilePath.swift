/// What is done with paths as text; nothing here touches the disk.
package enum FilePath {
    /// The folder of a path: "." for a bare name, "/" for a name in the root.
    package static func parent(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// The last component of a path.
    package static func name(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return path }
        return String(path[path.index(after: slash)...])
    }

    /// Whether a relative path from a peer stays below the folder that it is joined to.
    ///
    /// Any script, dots and spaces inside names are legal. Refused are: absolute paths, `..` and `.` as components,
    /// empty components, NUL, and components above 255 bytes.
    package static func staysInside(_ relative: String) -> Bool {
        guard !relative.isEmpty, relative.utf8.count <= 4096, !relative.utf8.contains(0) else { return false }
        return relative.split(separator: "/", omittingEmptySubsequences: false).allSatisfy { component in
            !component.isEmpty && component != "." && component != ".." && component.utf8.count <= 255
        }
    }
}
