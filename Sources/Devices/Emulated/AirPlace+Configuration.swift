internal import Protocol

extension AirPlace {
    /// The host's place, or the one that the device's own key `position` names in the same room.
    static func read(
        from reader: inout ConfigReader, in surroundings: Surroundings
    ) throws(ConfigReader.Invalid) -> AirPlace? {
        var place = surroundings.air
        let position = try reader.numbers("position", count: 3, default: place?.position ?? [0, 0, 0])
        guard position.count == 3, position.allSatisfy({ abs($0) <= AirSound.farthest }) else {
            throw reader.invalid(
                "position", .array(position.map { .number($0) }),
                legal: "a list of 3 numbers from -\(AirSound.farthest) to \(AirSound.farthest), in metres")
        }
        place?.position = position
        return place
    }
}

/// The seed of a device's random numbers.
enum EmulatedSeed {
    /// Key `seed`; without it each stream of each host has one of its own, the same at every run.
    static func read(
        from reader: inout ConfigReader, stream: StreamID, in surroundings: Surroundings
    ) throws(ConfigReader.Invalid) -> UInt64 {
        let own = SeededNoise.seed(surroundings.host.rawValue, stream.rawValue)
        return UInt64(
            bitPattern: try reader.integer("seed", default: Int64(bitPattern: own), in: Int64.min...Int64.max))
    }
}
