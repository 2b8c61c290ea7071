package import Protocol
internal import Timing

/// `insta360-go3s` in the configuration: a wrist camera that records by itself.
package enum Go3SCameraKind: DeviceKind {
    package static let name = "insta360-go3s"

    private enum Role: String, CaseIterable { case ego, left, right, unnamed = "" }

    /// Keys: `device`, `role`, `ways`, `mounts`, `wifi_network`, `wifi_password`, `wifi_interface`, `wifi_address`,
    /// `wifi_port`, `adapter`.
    package static func device(
        _ stream: StreamID, from reader: inout ConfigReader, in surroundings: Surroundings
    ) throws(ConfigReader.Invalid) -> any CaptureDevice {
        let word = try reader.string("device", legal: CameraTarget.rule) { CameraTarget($0) != nil }
        guard let target = CameraTarget(word) else {
            throw reader.invalid("device", .string(word), legal: CameraTarget.rule)
        }
        var options = Go3SCamera.Options(target: target, authorizationID: "downbeat-\(surroundings.host)")
        let role: Role = try reader.word("role", default: .unnamed)
        options.access.role = role.rawValue
        let ways = try reader.strings("ways", legal: "a list of 'usb' and 'wifi', in the order in which they are tried")
        if !ways.isEmpty {
            options.access.ways = ways.compactMap(ClipAccess.Way.init(rawValue:))
            guard options.access.ways.count == ways.count, Set(ways).count == ways.count else {
                throw reader.invalid(
                    "ways", .array(ways.map { .string($0) }), legal: "a list of 'usb' and 'wifi', each at most once")
            }
        }
        options.access.mounts = try reader.strings("mounts", legal: "a list of folders")
        options.access.network = try reader.optionalString("wifi_network", legal: "the name of the camera's network")
        options.access.password = try reader.string(
            "wifi_password", default: ClipAccess.standardPassword, legal: "8 to 63 characters"
        ) { (8...63).contains($0.utf8.count) }
        options.access.interface = try reader.optionalString(
            "wifi_interface", legal: "the name of a Wi-Fi adapter, such as 'wlan1'")
        options.access.address = try reader.string(
            "wifi_address", default: options.access.address, legal: "a numeric address"
        ) { !$0.isEmpty && $0.utf8.allSatisfy { $0 == 46 || $0 == 58 || (48...57).contains($0) } }
        let port = try reader.integer("wifi_port", default: 0, in: 0...65_535)
        if port > 0 { options.access.ports = [UInt16(clamping: port)] }
        let adapter = try reader.optionalString("adapter", legal: "the name of a Bluetooth adapter, such as 'hci0'")
        return Go3SCamera(stream, options, central: LowEnergyCentral(adapter: adapter))
    }

    /// A camera is only seen when it is scanned for, which would take seconds: it is named in the configuration instead.
    package static func attached() -> [DeviceList.Attached] { [] }
}
