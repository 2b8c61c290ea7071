internal import Platform
internal import Protocol
internal import Synchronization

/// Which camera each stream had in its last take, in a file that outlives the program.
///
/// Concurrency: any thread; the file is read and written under a lock.
package final class CameraMemory: Sendable {
    package struct Entry: Codable, Sendable, Hashable {
        /// The configuration's name for it: another name is another wish, and no surprise.
        package var name: String
        package var camera: CameraFingerprint

        package init(name: String, camera: CameraFingerprint) {
            self.name = name
            self.camera = camera
        }
    }

    package let path: String
    private let lock = Mutex(())

    package init(path: String) { self.path = path }

    /// Nil when nothing is remembered; a file that can't be read is worth nothing and hurts nobody.
    func camera(of stream: String, named name: String) -> CameraFingerprint? {
        lock.withLock { _ in
            guard let entry = read()[stream], entry.name == name else { return nil }
            return entry.camera
        }
    }

    func remember(_ stream: String, named name: String, _ camera: CameraFingerprint) throws {
        try lock.withLock { _ in
            var entries = read()
            let entry = Entry(name: name, camera: camera)
            guard entries[stream] != entry else { return }
            entries[stream] = entry
            try AtomicFile.write(try JSONText.encodePretty(entries), to: path)
        }
    }

    /// Forgets all streams, or these: what is attached now is what is meant.
    package func forget(_ streams: [String]? = nil) throws {
        try lock.withLock { _ in
            guard Files.exists(path) else { return }
            guard let streams else { return try Files.remove(path) }
            let entries = read().filter { !streams.contains($0.key) }
            try AtomicFile.write(try JSONText.encodePretty(entries), to: path)
        }
    }

    private func read() -> [String: Entry] {
        guard let text = try? Files.read(path, limit: 1 << 20) else { return [:] }
        return (try? JSONText.decode([String: Entry].self, from: text)) ?? [:]
    }
}
