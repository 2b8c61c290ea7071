internal import Platform
package import Protocol

/// The files of an episode's folder with their sizes and hashes, as an agent offers them and a coordinator checks them.
package enum EpisodeFiles {
    /// All regular files below, by path; a hash that is known for the same size is taken as it is.
    ///
    /// - Throws: `SystemError` when the folder or a file can't be read.
    package static func list(_ folder: String, known: [FileEntry] = []) throws -> [FileEntry] {
        var entries: [FileEntry] = []
        let known = Dictionary(known.map { (Array($0.path.utf8), $0) }, uniquingKeysWith: { first, _ in first })
        for path in try paths(folder) {
            guard let size = Files.size("\(folder)/\(path)") else { continue }
            if let entry = known[Array(path.utf8)], entry.size == size {
                entries.append(entry)
                continue
            }
            entries.append(
                FileEntry(
                    path: path, size: size, sha256: try SHA256.ofFile("\(folder)/\(path)"),
                    mtimeNanoseconds: Files.modificationTime("\(folder)/\(path)") ?? 0))
        }
        return entries
    }

    /// The regular files below a folder, relative to it, in the order of bytes.
    package static func paths(_ folder: String, below prefix: String = "", depth: Int = 0) throws -> [String] {
        var found: [String] = []
        let here = prefix.isEmpty ? folder : "\(folder)/\(prefix)"
        for name in try Files.list(here) {
            let path = prefix.isEmpty ? name : "\(prefix)/\(name)"
            if Files.isFolder("\(here)/\(name)") {
                // A link that leads back into its own folder must not lead us round for ever.
                if depth < 16 { found += try paths(folder, below: path, depth: depth + 1) }
            } else if Files.size("\(here)/\(name)") != nil {
                found.append(path)
            }
        }
        return found.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }
}
