internal import Synchronization

/// What this program's cameras ask of each USB bus: where a bus has no room left, a person must know who took it.
///
/// Concurrency: any thread.
enum BusLoad {
    private static let asked = Mutex<[Int: [String: Double]]>([:])

    /// A stream asks for so many megabytes a second, at most; 0 when unknown.
    static func take(_ bus: Int, _ stream: String, megabytes: Double) {
        asked.withLock { $0[bus, default: [:]][stream] = megabytes }
    }

    static func free(_ bus: Int, _ stream: String) {
        asked.withLock { $0[bus]?[stream] = nil }
    }

    /// The others on the bus, by name.
    static func others(on bus: Int, than stream: String) -> [(stream: String, megabytes: Double)] {
        asked.withLock { asked in
            (asked[bus] ?? [:]).filter { $0.key != stream }.sorted { $0.key < $1.key }
                .map { (stream: $0.key, megabytes: $0.value) }
        }
    }
}
