package import Protocol

/// `witmotion` in the configuration: a WitMotion sensor over the air.
package enum WitMotionKind: DeviceKind {
    package static let name = "witmotion"

    /// Keys: `address` or `name`, `rate`, `adapter`.
    package static func device(
        _ stream: StreamID, from reader: inout ConfigReader, in surroundings: Surroundings
    ) throws(ConfigReader.Invalid) -> any CaptureDevice {
        var options = WitMotionIMU.Options()
        let address = try reader.optionalString("address") ?? ""
        if !address.isEmpty { options.peers = try peers(address, reader) }
        options.name = try reader.string(
            "name", default: options.name, legal: "a part of the sensor's name", check: { !$0.isEmpty })
        let legal = WitMotionRate.allCases.map(\.hertz)
        let rate = try reader.number("rate", default: 100, in: 0.2...200)
        guard let code = WitMotionRate(hertz: rate) else {
            throw reader.invalid(
                "rate", .number(rate), legal: "one of \(legal.map { "\($0)" }.joined(separator: ", "))")
        }
        options.rate = code
        let adapter = try reader.optionalString("adapter")
        return WitMotionIMU(stream, options, central: LowEnergyCentral(adapter: adapter))
    }

    private static func peers(
        _ address: String, _ reader: ConfigReader
    ) throws(ConfigReader.Invalid) -> Set<LowEnergyPeer> {
        if address.hasPrefix("unix:") { return [.socket(String(address.dropFirst(5)))] }
        let both = BluetoothAddress.Kind.allCases.compactMap { BluetoothAddress(address, $0) }
        guard !both.isEmpty else {
            throw reader.invalid(
                "address", .string(address),
                legal: "an address such as 'C0:FF:EE:00:00:01', or the path of an emulator's socket such as "
                    + "'unix:/tmp/wrist.sock'")
        }
        return Set(both.map { .radio($0) })
    }

    /// Adapters are listed by the gloves' kind already.
    package static func attached() -> [DeviceList.Attached] { [] }
}
