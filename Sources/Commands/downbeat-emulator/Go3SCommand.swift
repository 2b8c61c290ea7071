internal import Devices
internal import Glibc
internal import Platform
internal import Protocol
internal import Synchronization
internal import Timing

/// `downbeat-emulator go3s`: a wrist camera that records by itself, over a socket in place of the air, with its files.
enum Go3SCommand: EmulatedDeviceCommand {
    static let name = "go3s"

    static let syntax = CommandSyntax(
        program: "downbeat-emulator go3s",
        summary: "An Insta360 Go 3S: Bluetooth packets on a socket, clips on a card and over HTTP.",
        options: [
            CommandOption("socket", value: "PATH", help: "where its Bluetooth packets are heard; its name ends with .sock"),
            CommandOption("card", value: "DIR", help: "its card; clips appear in DCIM/Camera01"),
            CommandOption("http", value: "PORT", help: "serve the card over HTTP at this port"),
            CommandOption("name", value: "NAME", help: "what it advertises (GO 3S EMU001)"),
            CommandOption("air", value: "DIR", help: "the emulated room that its microphone hears"),
            CommandOption("position", value: "X,Y,Z", help: "where it is in the room, metres (0,0,1)"),
            CommandOption("skew", value: "PPM", help: "how much faster than the host's its clock runs (0)"),
            CommandOption("clock-ahead", value: "S", help: "how much its date is ahead of UTC, as by its zone (0)"),
            CommandOption("truth", value: "FILE", help: "write for each clip: name, begin and end in ns of room time"),
            CommandOption("fault", value: "FAULT", help: "what goes wrong, see below; may be given several times"),
        ],
        example: "downbeat-emulator go3s --socket /tmp/go3s.sock --card /tmp/card --http 8080 --air /tmp/air --skew 40")

    static func run(_ parsed: CommandSyntax.Parsed) async throws -> ExitCode {
        guard let socket = parsed.value("socket"), let card = parsed.value("card") else {
            throw UsageError(program: syntax.program, message: "--socket and --card are needed")
        }
        var script = Go3SScript()
        script.name = parsed.value("name") ?? script.name
        script.skewPPM = try parsed.number("skew", default: 0, in: -1000...1000, of: syntax)
        script.clockAhead = .seconds(try parsed.number("clock-ahead", default: 0, in: -100_000...100_000, of: syntax))
        for text in parsed.all("fault") {
            guard let fault = Go3SScript.fault(text) else {
                throw UsageError(program: syntax.program, message: "'\(text)' is no fault\(Go3SScript.faultHelp)")
            }
            script.faults.append(fault)
        }
        var maker = Go3SClipMaker(card: card, air: try air(parsed))
        maker.skewPPM = script.skewPPM
        maker.isCut = script.faults.contains(.clipCut)
        try Files.makeFolder(maker.folder)
        let server = CameraFileServer(card: card)
        for case .downloadBreaks(let bytes) in script.faults { server.breakDownloads(after: bytes) }
        let port = UInt16(clamping: Int(try parsed.number("http", default: 0, in: 0...65_535, of: syntax)))
        if parsed.value("http") != nil { _ = try server.start(port: port) }
        defer { server.stop() }
        try await serve(script, socket, Writer(maker: maker, truth: parsed.value("truth")))
        return .good
    }

    private static func air(_ parsed: CommandSyntax.Parsed) throws -> AirPlace? {
        guard let folder = parsed.value("air") else { return nil }
        let text = parsed.value("position") ?? "0,0,1"
        let position = text.split(separator: ",").compactMap { Double($0) }
        guard position.count == 3, position.allSatisfy({ abs($0) <= 1000 }) else {
            throw UsageError(program: syntax.program, message: "--position is '\(text)'; legal is three numbers, X,Y,Z")
        }
        return AirPlace(folder: folder, position: position, noise: 0.001)
    }

    private static func serve(_ script: Go3SScript, _ socket: String, _ writer: Writer) async throws {
        let peripheral = SocketPeripheral(path: socket) {
            let camera = Go3SPeripheral(script) { HostClock.wall }
            camera.onRecording = { writer.write($0) }
            return camera
        }
        try await peripheral.begin()
        StandardOutput.write("downbeat-emulator: '\(script.name)' at \(socket)\n")
        let loop = EventLoop(name: "signals")
        for await _ in try Signals.stream(on: loop) { break }
        await peripheral.end()
        await writer.finish()
    }

    /// Makes the clips on a thread of its own, one after the other, and writes down what is true of them.
    private final class Writer: Sendable {
        private let loop = EventLoop(name: "clips")
        private let maker: Go3SClipMaker
        private let truth: String?

        init(maker: Go3SClipMaker, truth: String?) { (self.maker, self.truth) = (maker, truth) }

        func write(_ recording: Go3SRecording) {
            loop.perform { [self] in
                do {
                    try maker.make(recording)
                    try note(recording)
                } catch {
                    StandardError.write("downbeat-emulator: \(error)\n")
                }
            }
        }

        func finish() async { try? await loop.run {} }

        private func note(_ recording: Go3SRecording) throws {
            guard let truth else { return }
            let clock = RoomClock.ofThisProcess
            let line =
                "\(recording.names.first ?? "") \(clock.room(recording.begin).nanoseconds) "
                + "\(clock.room(recording.end).nanoseconds)\n"
            let old = (try? Files.read(truth)) ?? []
            try AtomicFile.write(old + Array(line.utf8), to: truth)
        }
    }
}
