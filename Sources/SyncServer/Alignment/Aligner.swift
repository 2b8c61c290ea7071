/// What an alignment method may look at.
struct AlignmentInput: Sendable {
    let streams: [LoadedStream]
    /// The clock series of the hosts, `clock_sync.jsonl`.
    let clockSeries: String?
    /// The merged manifest.
    let manifest: String?
    /// The hosts' `sync_point.json` files.
    let syncPoints: [String]
    /// The job's folder, for what a method has to store.
    let folder: String

    var hosts: [String] {
        var seen: Set<String> = []
        return streams.map(\.stream.host).filter { seen.insert($0).inserted }
    }
}

/// All hosts of a job on one clock.
struct Alignment: Sendable {
    /// The word for the report: `single_host`, `clock_series`, `clock_mapping`.
    let method: String
    let timelines: [String: HostTimeline]
}

/// One way to bring the hosts of a job to a common clock.
///
/// It either finds a time line for every host, or says in one clause why it can't; it never guesses.
protocol AlignmentMethod: Sendable {
    func align(_ input: AlignmentInput) -> AlignmentAttempt
}

enum AlignmentAttempt: Sendable {
    case aligned(Alignment)
    case impossible(String)
}

/// Tries the methods in order.
struct Aligner: Sendable {
    let methods: [any AlignmentMethod]

    static let standard = Aligner(methods: [SingleHostAlignment(), ClockSeriesAlignment(), ClockMappingAlignment()])

    struct Unaligned: Error, Sendable, CustomStringConvertible { let description: String }

    func align(_ input: AlignmentInput) throws(Unaligned) -> Alignment {
        var reasons: [String] = []
        for method in methods {
            switch method.align(input) {
            case .aligned(let alignment): return alignment
            case .impossible(let reason): reasons.append(reason)
            }
        }
        throw Unaligned(
            description: "the hosts \(input.hosts.joined(separator: ", ")) have no common clock: "
                + "\(reasons.joined(separator: "; ")); send the clock_sync.jsonl or the manifest.json that the coordinator made"
        )
    }
}

/// One host is its own common clock.
struct SingleHostAlignment: AlignmentMethod {
    func align(_ input: AlignmentInput) -> AlignmentAttempt {
        let hosts = input.hosts
        guard let host = hosts.first, hosts.count == 1 else { return .impossible("they are \(hosts.count) machines") }
        return .aligned(Alignment(method: "single_host", timelines: [host: .identity]))
    }
}
