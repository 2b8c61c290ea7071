internal import Platform
package import Protocol
internal import Timing

/// `v4l2` in the configuration: a camera of the kernel.
package enum V4L2CameraKind: DeviceKind {
    package static let name = "v4l2"

    /// Keys: `device`, `format`, `width`, `height`, `rate`, `controls`, `wait_s`.
    package static func device(
        _ stream: StreamID, from reader: inout ConfigReader, in surroundings: Surroundings
    ) throws(ConfigReader.Invalid) -> any CaptureDevice {
        let device = try reader.string(
            "device",
            legal: "a camera's link below /dev/v4l, serial number, bus or name, as `downbeat-agent devices` shows them"
        ) { !$0.isEmpty }
        var options = V4L2Camera.Options(device: device)
        options.wish.format = try reader.word("format", default: .auto)
        options.wish.width = Int(try reader.integer("width", default: 1280, in: 16...16384))
        options.wish.height = Int(try reader.integer("height", default: 720, in: 16...16384))
        options.wish.rate = try reader.number("rate", default: 30, in: 0.1...1000)
        options.wait = .seconds(try reader.number("wait_s", default: 0, in: 0...300))
        options.wish.controls = try controls(&reader)
        options.memory = surroundings.cameras
        return V4L2Camera(stream, options)
    }

    /// `controls`: names as `v4l2-ctl` shows them; values are numbers, true or false, or a menu's words.
    private static func controls(_ reader: inout ConfigReader) throws(ConfigReader.Invalid) -> [ControlWish] {
        let read = reader.value("controls")
        guard let read else { return [] }
        let legal = "an object of a camera's controls, such as { exposure_dynamic_framerate: 0 }"
        guard case .object(let members) = read else { throw reader.invalid("controls", read, legal: legal) }
        var wishes: [ControlWish] = []
        for (name, value) in members.sorted(by: { $0.key < $1.key }) {
            switch value {
            case .integer(let number): wishes.append(ControlWish(name, .number(number)))
            case .bool(let flag): wishes.append(ControlWish(name, .number(flag ? 1 : 0)))
            case .string(let word): wishes.append(ControlWish(name, .word(word)))
            default:
                throw reader.invalid(
                    "controls.\(name)", value, legal: "a whole number, true or false, or a menu's word")
            }
        }
        return wishes
    }

    package static func attached() -> [DeviceList.Attached] { AttachedCameras.all() }
}
