internal import Devices
internal import Glibc
internal import Platform
internal import Timing

/// `downbeat-emulator imu`: an inertial sensor that prints lines on a serial port, or WitMotion's frames.
enum IMUCommand {
    static let command = EmulatedDeviceCommand(name: "imu", syntax: syntax, run: run)

    private static let syntax = CommandSyntax(
        program: "downbeat-emulator imu",
        summary: "An inertial sensor: lines on a serial port, a WitMotion sensor, or a HID sensor of the kernel.",
        options: [
            CommandOption("serial", value: "LINK", help: "print lines on a pseudo-terminal behind this link"),
            CommandOption(
                "witmotion", value: "SOCKET", help: "be a WitMotion sensor behind a socket that stands for a BLE link"),
            CommandOption(
                "uhid", value: "SERIAL", help: "be a HID sensor of the kernel (/dev/uhid) with this serial number"),
            CommandOption("format", value: "csv|json", help: "what the lines are (csv)"),
            CommandOption("rate", value: "HZ", help: "samples a second by the device's clock (200)"),
            CommandOption("skew", value: "PPM", help: "how much faster than the host's the device's clock runs (0)"),
            CommandOption("counter-bits", value: "N", help: "width of the device's counter (32)"),
            CommandOption("counter-hz", value: "HZ", help: "rate of the device's counter (1000000)"),
            CommandOption("counter-start", value: "N", help: "the counter at the start (0)"),
            CommandOption("fault", value: "FAULT", help: "what goes wrong, see below; may be given several times"),
            CommandOption("truth", value: "FILE", help: "write what was really taken: index, host time in ns, sent"),
            CommandOption("seed", value: "N", help: "of the motion and of chance (1)"),
        ],
        example: "downbeat-emulator imu --serial /tmp/imu.tty --rate 200 --skew 300 --fault burst=45@2..10")

    @Sendable private static func run(_ parsed: CommandSyntax.Parsed) async throws -> ExitCode {
        var model = IMUModel()
        model.rate = try parsed.number("rate", default: 200, in: 0.1...5000, of: syntax)
        model.skewPPM = try parsed.number("skew", default: 0, in: -20_000...20_000, of: syntax)
        model.shape = CounterShape(
            bits: Int(try parsed.number("counter-bits", default: 32, in: 8...64, of: syntax)),
            ticksPerSecond: Int64(try parsed.number("counter-hz", default: 1e6, in: 1...1e9, of: syntax)))
        model.counterStart = try parsed.whole("counter-start", default: 0, of: syntax)
        let seed = try parsed.whole("seed", default: 1, of: syntax)
        model.motion = EmulatedMotion(seed: seed)
        var plan = FaultPlan()
        for text in parsed.all("fault") where !plan.add(text) {
            throw UsageError(program: syntax.program, message: "'\(text)' is no fault")
        }
        let truth = try parsed.value("truth").map { path throws(SystemError) in
            OpenFile(try FileDescriptor(path: path, flags: O_WRONLY | O_CREAT | O_TRUNC))
        }
        let edge: any EmulatorEdge
        switch (parsed.value("serial"), parsed.value("witmotion"), parsed.value("uhid")) {
        case (let link?, nil, nil):
            let format = parsed.value("format") ?? "csv"
            guard let kind = IMUModel.Output(rawValue: format), kind != .hid else {
                throw UsageError(program: syntax.program, message: "--format is '\(format)'; legal is csv or json")
            }
            model.output = kind
            edge = SerialEdge(link: link)
        case (nil, let path?, nil):
            var script = WitMotionPeripheral.Script()
            (script.skewPPM, script.seed) = (model.skewPPM, seed)
            try await WitMotionRun(script, path: path, plan: plan, truth: truth).run()
            return .good
        case (nil, nil, let serial?):
            model.output = .hid
            edge = HIDSensorEdge(serial: serial)
        default:
            throw UsageError(
                program: syntax.program, message: "one of --serial, --witmotion and --uhid is needed, and only one")
        }
        let run = EmulatorRun(model, edge: edge, link: EmulatedLink(plan: plan, seed: seed), truth: truth)
        try await run.run()
        return .good
    }
}

/// An inertial sensor on a hand that moves in sums of sines.
struct IMUModel: EmulatorModel {
    enum Output: String { case csv, json, hid }

    var output = Output.csv
    var rate = 200.0
    var skewPPM = 0.0
    var shape = CounterShape.microseconds32
    var counterStart: UInt64 = 0
    var motion = EmulatedMotion(seed: 1)
    private var lastAge = Interval.zero

    var period: Double { 1e9 / (rate * (1 + skewPPM * 1e-6)) }

    mutating func packet(_ index: Int64, taken age: Interval) -> [UInt8] {
        lastAge = age
        let values = motion.values(at: Timestamp(nanoseconds: age.nanoseconds))
        switch output {
        case .csv:
            let fields = values.map { Self.decimals($0) }.joined(separator: ",")
            return Array("$IMU,\(index),\(counter(at: age)),\(fields)\r\n".utf8)
        case .json:
            let text = values.map { Self.decimals($0) }
            return Array(
                """
                {"n":\(index),"t":\(counter(at: age)),"acc":{"x":\(text[0]),"y":\(text[1]),"z":\(text[2])},\
                "gyro":[\(text[3]),\(text[4]),\(text[5])]}\n
                """.utf8)
        case .hid:
            // Number, ready, new data; then the axes.
            return [1, 2, 3] + Self.counts(values[0..<3], HIDSensorEdge.acceleration) + [2, 2, 3]
                + Self.counts(values[3..<6], HIDSensorEdge.rate)
        }
    }

    mutating func shiftCounter(by seconds: Double?) {
        if let seconds {
            counterStart &+= UInt64(bitPattern: shape.ticks(of: .seconds(seconds)))
        } else {
            counterStart = 0 &- ticks(at: lastAge)
        }
    }

    mutating func received(_ bytes: [UInt8]) -> [[UInt8]] {
        if output == .hid, bytes.count == 5 {
            let interval = bytes.dropFirst().reversed().reduce(0) { $0 << 8 | Int($1) }
            if interval > 0 { rate = 1000 / Double(interval) }
        }
        return []
    }

    private func ticks(at age: Interval) -> UInt64 {
        let whole = shape.ticks(of: age)
        return UInt64(bitPattern: whole &+ Int64((Double(whole) * skewPPM * 1e-6).rounded(.down)))
    }

    private func counter(at age: Interval) -> UInt64 {
        let value = counterStart &+ ticks(at: age)
        return shape.bits == 64 ? value : value & ((1 << UInt64(shape.bits)) - 1)
    }

    private static func counts(_ values: ArraySlice<Double>, _ scale: Double) -> [UInt8] {
        values.flatMap { value -> [UInt8] in
            let count = Int16(clamping: Int((value / scale).rounded()))
            return [UInt8(truncatingIfNeeded: count), UInt8(truncatingIfNeeded: count >> 8)]
        }
    }

    /// Five places, as a sensor prints them.
    private static func decimals(_ value: Double) -> String {
        let scaled = Int64((value * 1e5).rounded())
        let digits = String(scaled.magnitude)
        let padded = String(repeating: "0", count: max(0, 6 - digits.count)) + digits
        return "\(scaled < 0 ? "-" : "")\(padded.dropLast(5)).\(padded.suffix(5))"
    }
}
