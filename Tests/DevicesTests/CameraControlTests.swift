internal import Devices
internal import Platform
internal import Protocol
internal import Testing

/// What can be set on a camera.
@Suite struct CameraControlTests {
    /// linux/v4l2-controls.h: V4L2_CID_EXPOSURE_AUTO_PRIORITY, V4L2_CID_EXPOSURE_AUTO, V4L2_CID_EXPOSURE_ABSOLUTE.
    private static let priority = V4L2Control(
        id: 0x009A_0903, title: "Exposure, Dynamic Framerate", kind: .boolean, range: 0...1, fallback: 1)
    private static let auto = V4L2Control(
        id: 0x009A_0901, title: "Auto Exposure", kind: .menu, range: 0...3, fallback: 3,
        menu: [1: "Manual Mode", 3: "Aperture Priority Mode"])
    private static let time = V4L2Control(
        id: 0x009A_0902, title: "Exposure Time, Absolute", kind: .integer, range: 3...2047, fallback: 250)

    private func camera(stubborn: [String: Int64] = [:], _ machine: inout ScriptedMachine) -> any V4L2Port {
        var script = DriverScript()
        script.controls = [Self.time, Self.priority, Self.auto]
        script.stubborn = stubborn
        machine = ScriptedMachine([script])
        guard let port = try? machine.machine.connect("/dev/video7") else { preconditionFailure() }
        return port
    }

    /// The names of v4l2-ctl 1.22.
    @Test(arguments: [
        ("Exposure, Dynamic Framerate", "exposure_dynamic_framerate"),
        ("White Balance, Automatic", "white_balance_automatic"),
        ("Exposure Time, Absolute", "exposure_time_absolute"), ("Power Line Frequency", "power_line_frequency"),
        ("LED1 Mode", "led1_mode"), ("Focus (absolute)", "focus_absolute"),
    ])
    func `Controls have the names that v4l2-ctl shows`(title: String, name: String) {
        #expect(V4L2Control.name(of: title) == name)
    }

    @Test(arguments: ["exposure_dynamic_framerate", "exposure_auto_priority"])
    func `A control is known by the name of either kernel`(name: String) {
        #expect(Self.priority.isNamed(name))
        let old = V4L2Control(id: 1, title: "Exposure, Auto Priority", kind: .boolean, range: 0...1)
        #expect(old.isNamed(name))
        #expect(!Self.time.isNamed(name))
    }

    @Test func `C1 #16 a camera may not lengthen its frames in the dark, unless the configuration says so`() throws {
        var machine = ScriptedMachine([])
        let result = try CameraControls.apply([], to: camera(&machine))
        #expect(machine.calls == ["set exposure_dynamic_framerate=0"])
        #expect(result.settings == [StreamSetting("exposure_dynamic_framerate", asked: "false", got: "false")])
        #expect(result.findings.isEmpty)
        _ = try CameraControls.apply([ControlWish("exposure_auto_priority", .number(1))], to: camera(&machine))
        #expect(machine.calls == ["set exposure_dynamic_framerate=1"])
    }

    @Test func `An automatic control is set before what it governs, and a menu takes its words`() throws {
        var machine = ScriptedMachine([])
        let wishes = [
            ControlWish("exposure_time_absolute", .number(100)), ControlWish("auto_exposure", .word("manual mode")),
        ]
        let result = try CameraControls.apply(wishes, to: camera(&machine))
        #expect(
            machine.calls == [
                "set auto_exposure=1", "set exposure_dynamic_framerate=0", "set exposure_time_absolute=100",
            ])
        #expect(
            result.settings.first == StreamSetting("auto_exposure", asked: "1 (Manual Mode)", got: "1 (Manual Mode)"))
    }

    @Test func `What the camera makes something else of is a finding`() throws {
        var machine = ScriptedMachine([])
        let port = camera(stubborn: ["exposure_time_absolute": 250], &machine)
        let result = try CameraControls.apply([ControlWish("exposure_time_absolute", .number(100))], to: port)
        #expect(
            result.findings == ["control 'exposure_time_absolute' was asked to be 100 and isn't; it is 250"])
        #expect(result.settings.last?.differs == true)
    }

    @Test(
        arguments: [
            ("gain", .number(1), "no control 'gain'", "name one of exposure_time_absolute, "),
            ("exposure_time_absolute", .number(5000), "can't be 5000", "a number from 3 to 2047"),
            ("auto_exposure", .word("night"), "can't be 'night'", "one of 1 (Manual Mode), 3 (Aperture Priority Mode)"),
            ("exposure_dynamic_framerate", .number(2), "can't be 2", "0 or 1"),
        ] as [(String, ControlWish.Value, String, String)])
    func `A control or a value that isn't there is refused with what is`(
        name: String, value: ControlWish.Value, cause: String, cure: String
    ) {
        var machine = ScriptedMachine([])
        let port = camera(&machine)
        #expect {
            try CameraControls.apply([ControlWish(name, value)], to: port)
        } throws: { error in
            guard let refused = error as? CameraControls.Refused else { return false }
            return refused.cause.contains(cause) && refused.cure.contains(cure)
        }
    }

    @Test func `Controls are read from the configuration`() throws {
        func device(_ text: String) throws -> any CaptureDevice {
            var reader = try ConfigReader(
                file: "agent.json5", text: Array("{ id: 'cam', kind: 'v4l2', device: 'A1', controls: \(text) }".utf8))
            return try DeviceCatalog.device(from: &reader, in: Surroundings(host: HostID(unchecked: "h")))
        }
        #expect(try device("{ auto_exposure: 'Manual Mode', gain: 3, white_balance_automatic: false }") is V4L2Camera)
        #expect {
            _ = try device("{ gain: 1.5 }")
        } throws: {
            "\($0)".contains("'controls.gain' is 1.5; legal is a whole number, true or false, or a menu's word")
        }
        #expect {
            _ = try device("[1]")
        } throws: {
            "\($0)".contains("'controls' is a list; legal is an object of a camera's controls")
        }
    }
}
