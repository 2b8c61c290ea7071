internal import Timing

/// What goes wrong with an emulated device, and when.
///
/// Pure.
struct FaultPlan: Sendable {
    /// One kind of fault; the number's unit is the kind's own.
    enum Kind: String, Sendable, CaseIterable {
        case burst, duplicate, loss, stall, disconnect, garbage, reset, jump

        var help: String {
            switch self {
            case .burst: "burst=MS        hold samples back and deliver them together each MS milliseconds"
            case .duplicate: "duplicate=PCT   send this part of the samples twice"
            case .loss: "loss=PCT        never send this part of the samples"
            case .stall: "stall=S         send nothing for S seconds; what was taken then is lost"
            case .disconnect: "disconnect=S    the link is gone for S seconds"
            case .garbage: "garbage=PCT     damage this part of the samples on their way"
            case .reset: "reset=1         the device's counter begins anew at 0"
            case .jump: "jump=S          the device's counter jumps by S seconds"
            }
        }

        /// At one instant, instead of for a while.
        var isMomentary: Bool { self == .reset || self == .jump }
    }

    private struct Entry: Sendable {
        var kind: Kind
        var value: Double
        var from: Interval
        var to: Interval
        var done = false
    }

    static let help = """

        Faults, for --fault and on standard input:
        \(Kind.allCases.map { "  \($0.help)" }.joined(separator: "\n"))
        With @A or @A..B after it, a fault begins A seconds after the start and ends after B: burst=45@2..10.
        A line on standard input counts from now on: 'stall=3', 'burst=0' ends the bursts.

        """

    private var entries: [Entry] = []

    /// Adds "kind=value", "kind=value@from" or "kind=value@from..to"; false when it isn't one.
    ///
    /// A fault without a beginning begins now.
    mutating func add(_ text: String, now: Interval = .zero) -> Bool {
        let parts = text.split(separator: "@", omittingEmptySubsequences: false)
        let words = parts[0].split(separator: "=", omittingEmptySubsequences: false)
        guard parts.count <= 2, words.count == 2, let kind = Kind(rawValue: String(words[0])),
            let value = Double(words[1]), value.isFinite, value.magnitude < 1e6
        else { return false }
        var (from, to) = (now, Interval(nanoseconds: .max))
        if parts.count == 2 {
            let bounds = parts[1].split(separator: ".", omittingEmptySubsequences: false)
            let text = String(parts[1])
            guard let range = Self.range(text), bounds.count >= 1 else { return false }
            from = range.0
            if let end = range.1 { to = end }
        }
        if kind == .stall || kind == .disconnect { to = min(to, from + .seconds(value)) }
        // A later word on the same matter ends the earlier ones.
        if !kind.isMomentary {
            for index in entries.indices where entries[index].kind == kind {
                entries[index].to = min(entries[index].to, from)
            }
        }
        entries.append(Entry(kind: kind, value: value, from: from, to: to))
        return true
    }

    /// The value of a lasting fault; 0 when there is none now.
    func value(_ kind: Kind, at age: Interval) -> Double {
        entries.last { $0.kind == kind && $0.from <= age && age < $0.to }?.value ?? 0
    }

    /// The values of the momentary faults of a kind that are due and haven't been taken.
    mutating func take(_ kind: Kind, at age: Interval) -> [Double] {
        var values: [Double] = []
        for index in entries.indices
        where entries[index].kind == kind && !entries[index].done && entries[index].from <= age {
            entries[index].done = true
            values.append(entries[index].value)
        }
        return values
    }

    private static func range(_ text: String) -> (Interval, Interval?)? {
        guard let dots = text.firstRange(of: "..") else {
            return Double(text).map { (.seconds($0), nil) }
        }
        guard let from = Double(text[..<dots.lowerBound]), let to = Double(text[dots.upperBound...]) else { return nil }
        return (.seconds(from), .seconds(to))
    }
}
