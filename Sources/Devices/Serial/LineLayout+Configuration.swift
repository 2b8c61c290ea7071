internal import Protocol
internal import Timing

extension LineLayout {
    /// Units in which a counter may be printed, and how many there are in a second.
    private static let units: [String: Int64] = ["s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000]

    /// Keys: `format`, `separator`, `prefix`, `channels`, `counter`, `sequence`.
    init(from reader: inout ConfigReader) throws(ConfigReader.Invalid) {
        let format: Format = try reader.word("format", default: .csv)
        let separator = try reader.string(
            "separator", default: ",", legal: "one ASCII character; ' ' stands for any number of blanks",
            check: { $0.utf8.count == 1 })
        let prefix = try reader.string("prefix", default: "")
        let entries = try reader.objects("channels")
        guard (1...64).contains(entries.count) else {
            throw reader.invalid("channels", .array([]), legal: "a list of 1 to 64 objects with 'name' and a place")
        }
        var channels: [Channel] = []
        for var entry in entries {
            let channel = try Self.channel(&entry, format)
            guard !channels.contains(where: { $0.name == channel.name }) else {
                throw entry.invalid("name", .string(channel.name), legal: "a name that no other channel has")
            }
            channels.append(channel)
        }
        var counter: Counter?
        if var entry = try reader.object("counter") { counter = try Self.counter(&entry, format) }
        var sequence: Place?
        if var entry = try reader.object("sequence") {
            sequence = try Self.place(&entry, format)
            try entry.finish()
        }
        self.init(
            format: format, separator: separator.utf8.first ?? UInt8(ascii: ","), prefix: Array(prefix.utf8),
            channels: channels, counter: counter, sequence: sequence)
    }

    private static func channel(
        _ entry: inout ConfigReader, _ format: Format
    ) throws(ConfigReader.Invalid) -> Channel {
        let channel = Channel(
            name: try entry.string(
                "name", legal: "a text of 1 to 64 bytes", check: { (1...64).contains($0.utf8.count) }),
            unit: try entry.string("unit", default: "", legal: "a unit such as 'm/s^2' or 'rad/s'"),
            place: try place(&entry, format),
            scale: try entry.number("scale", default: 1, in: -1e12...1e12),
            offset: try entry.number("offset", default: 0, in: -1e12...1e12))
        try entry.finish()
        return channel
    }

    /// With `bits` the number is whole and begins anew after 2^bits; without, it may have a fraction and doesn't.
    private static func counter(
        _ entry: inout ConfigReader, _ format: Format
    ) throws(ConfigReader.Invalid) -> Counter {
        let place = try place(&entry, format)
        let counter: Counter
        if entry.value("bits") != nil {
            let bits = Int(try entry.integer("bits", in: 8...64))
            var ticks: Int64 = 0
            if entry.value("unit") != nil {
                ticks = try unit(&entry)
            } else {
                ticks = try entry.integer("ticks_per_second", in: 1...1_000_000_000)
            }
            counter = Counter(place: place, shape: CounterShape(bits: bits, ticksPerSecond: ticks))
        } else {
            counter = Counter(
                place: place, shape: CounterShape(bits: 64, ticksPerSecond: 1_000_000_000),
                ticksPerUnit: UInt64(1_000_000_000 / (try unit(&entry))))
        }
        try entry.finish()
        return counter
    }

    private static func unit(_ entry: inout ConfigReader) throws(ConfigReader.Invalid) -> Int64 {
        let name = try entry.string("unit", legal: "one of 's', 'ms', 'us', 'ns'", check: { units[$0] != nil })
        return units[name] ?? 1
    }

    private static func place(_ entry: inout ConfigReader, _ format: Format) throws(ConfigReader.Invalid) -> Place {
        switch format {
        case .csv: return .field(Int(try entry.integer("field", in: 0...255)))
        case .json:
            return .key(
                Array(
                    try entry.string(
                        "key", legal: "a path of keys such as 'acc.x' or 'gyro.0'",
                        check: { !$0.isEmpty && $0.utf8.count <= 128 }
                    ).utf8))
        }
    }
}
