internal import Glibc
internal import Platform
internal import Protocol

/// Devices that speak the real protocol of the real device, for tests and demos.
@main
struct DownbeatEmulator {
    static let version = "downbeat-emulator \(ProductVersion.current)"

    /// One for each kind of device; each is a file of its own.
    static let devices: [EmulatedDeviceCommand] = [IMUCommand.command]

    static func main() async {
        Signals.block()
        exit(await run(Array(CommandLine.arguments.dropFirst())).rawValue)
    }

    private static func run(_ words: [String]) async -> ExitCode {
        switch words.first {
        case "--version":
            StandardOutput.write("\(version)\n")
            return .good
        case "--help", "-h", "help":
            StandardOutput.write(usage)
            return .good
        case let word?:
            guard let device = devices.first(where: { $0.name == word }) else {
                StandardError.write("downbeat-emulator: '\(word)' is no device\nTry 'downbeat-emulator --help'.\n")
                return .usage
            }
            return await run(device, Array(words.dropFirst()))
        case nil:
            StandardError.write("downbeat-emulator: a device is needed\nTry 'downbeat-emulator --help'.\n")
            return .usage
        }
    }

    private static func run(_ device: EmulatedDeviceCommand, _ words: [String]) async -> ExitCode {
        do {
            let parsed = try device.syntax.parse(words)
            if parsed.has("help") {
                StandardOutput.write(device.syntax.help)
                StandardOutput.write(FaultPlan.help)
                return .good
            }
            if parsed.has("version") {
                StandardOutput.write("\(version)\n")
                return .good
            }
            return try await device.run(parsed)
        } catch let error as UsageError {
            StandardError.write("\(error)\n")
            return .usage
        } catch {
            StandardError.write("\(device.syntax.program): \(error)\n")
            return .failed
        }
    }

    private static var usage: String {
        let width = (devices.map { $0.name.count }.max() ?? 0) + 4
        let lines = devices.map {
            "  \($0.name)\(String(repeating: " ", count: width - $0.name.count))\($0.syntax.summary)"
        }
        return """
            Usage: downbeat-emulator DEVICE [OPTION]…
            Is a device that speaks the real protocol of the real one, until SIGINT or SIGTERM.

            \(lines.joined(separator: "\n"))

              --help     print this text; each device has its own: downbeat-emulator imu --help
              --version  print the version

            Faults come on command: as options, or as lines on standard input while it runs.

            Exit codes: 0 good, 1 failed, 2 the command line is wrong, 3 not found, 4 refused.

            Example: downbeat-emulator imu --serial /tmp/imu.tty --rate 200

            """
    }
}

/// One kind of device: its options, and its life until a signal.
struct EmulatedDeviceCommand: Sendable {
    /// The word after the program's name.
    let name: String
    let syntax: CommandSyntax
    let run: @Sendable (CommandSyntax.Parsed) async throws -> ExitCode
}

/// Numbers among the options.
extension CommandSyntax.Parsed {
    func number(_ option: String, default fallback: Double, in range: ClosedRange<Double>, of syntax: CommandSyntax)
        throws(UsageError) -> Double
    {
        guard let text = value(option) else { return fallback }
        guard let number = Double(text), range.contains(number) else {
            throw UsageError(
                program: syntax.program,
                message: "--\(option) is '\(text)'; legal is a number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    func whole(_ option: String, default fallback: UInt64, of syntax: CommandSyntax) throws(UsageError) -> UInt64 {
        guard let text = value(option) else { return fallback }
        guard let number = UInt64(text) else {
            throw UsageError(
                program: syntax.program, message: "--\(option) is '\(text)'; legal is a whole number, 0 or more")
        }
        return number
    }
}
