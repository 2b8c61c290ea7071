internal import Devices
internal import Glibc
internal import Platform
internal import Timing

/// `downbeat-emulator glove`: an OGLO glove over the air (at a socket, or behind the kernel's virtual adapter) or at USB.
enum GloveCommand: EmulatedDeviceCommand {
    static let name = "glove"

    static let syntax = CommandSyntax(
        program: "downbeat-emulator glove",
        summary: "An OGLO glove: over Bluetooth (socket or /dev/vhci), or at a USB port (pseudo-terminal).",
        options: [
            CommandOption("side", value: "left|right", help: "which hand (left)"),
            CommandOption("socket", value: "PATH", help: "be heard at this Unix socket of packets: 'unix:PATH'"),
            CommandOption("vhci", value: "ADDRESS", help: "be heard by an adapter that the kernel makes of /dev/vhci"),
            CommandOption("usb", value: "LINK", help: "send tagged frames on a pseudo-terminal behind this link"),
            CommandOption("schema", value: "N", help: "4, 5 or 6; 0 is the first glove, with five sensors (5)"),
            CommandOption("rate", value: "HZ", help: "samples a second by the glove's clock (100)"),
            CommandOption("skew", value: "PPM", help: "how much faster than the host's the glove's clock runs (0)"),
            CommandOption("counter-start", value: "N", help: "the glove's clock at the start, in microseconds (0)"),
            CommandOption("battery", value: "PERCENT", help: "of its battery (87)"),
            CommandOption("called", value: "NAME", help: "the name that it advertises (OGLO LEFT)"),
            CommandOption("wrong-side", help: "its configuration says the other hand than its name"),
            CommandOption("cut-config", help: "its configuration is cut off after 510 bytes"),
            CommandOption("fault", value: "FAULT", help: "what goes wrong, see below; may be given several times"),
            CommandOption("truth", value: "FILE", help: "write what was really taken: index, host time in ns, 1"),
            CommandOption("seed", value: "N", help: "of its serial number and of chance (1)"),
        ],
        example: "downbeat-emulator glove --side left --socket '/tmp/OGLO LEFT.sock' --fault burst=45 --fault disconnect=1@30")

    static func run(_ parsed: CommandSyntax.Parsed) async throws -> ExitCode {
        var script = try script(parsed)
        script.seed = try parsed.whole("seed", default: 1, of: syntax)
        var plan = FaultPlan()
        for text in parsed.all("fault") where !plan.add(text) {
            throw UsageError(program: syntax.program, message: "'\(text)' is no fault")
        }
        let truth = try parsed.value("truth").map { path throws(SystemError) in
            OpenFile(try FileDescriptor(path: path, flags: O_WRONLY | O_CREAT | O_TRUNC))
        }
        switch (parsed.value("socket"), parsed.value("vhci"), parsed.value("usb")) {
        case (let path?, nil, nil): try await atSocket(path, script, plan, truth)
        case (nil, let address?, nil): try await atAdapter(address, script, plan, truth)
        case (nil, nil, let link?):
            let model = GloveModel(script)
            try await EmulatorRun(
                model, edge: SerialEdge(link: link), link: EmulatedLink(plan: plan, seed: script.seed), truth: truth
            ).run()
        default:
            throw UsageError(
                program: syntax.program, message: "one of --socket, --vhci and --usb is needed, and only one")
        }
        return .good
    }

    private static func script(_ parsed: CommandSyntax.Parsed) throws -> GloveScript {
        let side = parsed.value("side") ?? "left"
        guard let hand = GloveSide(rawValue: side) else {
            throw UsageError(program: syntax.program, message: "--side is '\(side)'; legal is left or right")
        }
        var script = GloveScript(side: hand)
        let schema = try parsed.number("schema", default: 5, in: 0...6, of: syntax)
        guard [0, 4, 5, 6].contains(schema) else {
            throw UsageError(program: syntax.program, message: "--schema is \(schema); legal is 0, 4, 5 or 6")
        }
        script.schema = Int(schema)
        script.rate = try parsed.number("rate", default: 100, in: 1...500, of: syntax)
        script.skewPPM = try parsed.number("skew", default: 0, in: -2_000...2_000, of: syntax)
        script.counterStart = UInt32(
            truncatingIfNeeded: try parsed.whole("counter-start", default: 0, of: syntax))
        script.battery = Int(try parsed.number("battery", default: 87, in: 0...100, of: syntax))
        script.name = parsed.value("called")
        script.saysWrongSide = parsed.has("wrong-side")
        script.cutsConfiguration = parsed.has("cut-config")
        return script
    }

    // MARK: Over the air

    /// On the device's thread.
    private static func glove(_ script: GloveScript, _ plan: FaultPlan, _ truth: OpenFile?) -> GlovePeripheral {
        let glove = GlovePeripheral(script, at: HostClock.now)
        var plan = plan
        glove.weather = { [unowned glove] age in
            var weather = GlovePeripheral.Weather()
            weather.burst = plan.value(.burst, at: age) / 1e3
            weather.lossPercent = plan.value(.loss, at: age)
            weather.duplicatePercent = plan.value(.duplicate, at: age)
            weather.isStalled = plan.value(.stall, at: age) != 0
            weather.isDown = plan.value(.disconnect, at: age) != 0
            if !plan.take(.reset, at: age).isEmpty { glove.suffer(.restart, at: HostClock.now) }
            return weather
        }
        glove.onSample = { index, _, taken in truth?.write("\(index) \(taken.nanoseconds) 1\n") }
        return glove
    }

    private static func atSocket(
        _ path: String, _ script: GloveScript, _ plan: FaultPlan, _ truth: OpenFile?
    ) async throws {
        let peripheral = SocketPeripheral(path: path) { glove(script, plan, truth) }
        try await peripheral.begin()
        StandardOutput.write("downbeat-emulator: \(script.advertisedName) at unix:\(path)\n")
        try await untilSignal()
        await peripheral.end()
    }

    private static func atAdapter(
        _ text: String, _ script: GloveScript, _ plan: FaultPlan, _ truth: OpenFile?
    ) async throws {
        guard let address = BluetoothAddress(text, .random), let own = BluetoothAddress("00:AA:01:00:00:42") else {
            throw UsageError(
                program: syntax.program, message: "--vhci is '\(text)'; an address like C0:FF:EE:00:00:01 is needed")
        }
        let adapter = VirtualAdapter(own: own) { [(address, glove(script, plan, truth))] }
        try await adapter.begin()
        StandardOutput.write("downbeat-emulator: \(script.advertisedName) at \(address)\n")
        try await untilSignal()
        await adapter.end()
    }

    private static func untilSignal() async throws {
        let loop = EventLoop(name: "signals")
        for await _ in try Signals.stream(on: loop) { break }
    }
}

/// A glove at a USB port: what it has taken since the last sample of its taxels goes out with it.
struct GloveModel: EmulatorModel {
    private var glove: USBGloveModel

    init(_ script: GloveScript) {
        glove = USBGloveModel(script)
        period = 1e9 / (script.rate * (1 + script.skewPPM * 1e-6))
    }

    let period: Double

    mutating func packet(_ index: Int64, taken age: Interval) -> [UInt8] {
        glove.heartbeats(at: age.seconds) + glove.due(at: age.seconds).flatMap(\.bytes)
    }

    mutating func shiftCounter(by seconds: Double?) {}

    mutating func received(_ bytes: [UInt8]) -> [[UInt8]] { [glove.received(bytes)].filter { !$0.isEmpty } }
}
