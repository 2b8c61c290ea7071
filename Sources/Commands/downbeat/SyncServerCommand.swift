internal import Platform
internal import SyncServer

/// `downbeat syncserver`: the built-in sync server, until SIGINT or SIGTERM.
enum SyncServerCommand {
    static let syntax = CommandSyntax(
        program: "downbeat syncserver", summary: "Serve SyncField's sync interface over HTTP until SIGINT or SIGTERM.",
        options: [
            CommandOption(
                "port", short: "p", value: "PORT", help: "port to listen on; 0 lets the system choose (8080)"),
            CommandOption("bind", value: "ADDRESS", help: "numeric address to listen on (127.0.0.1)"),
            CommandOption("data", value: "DIR", help: "folder that stands for /data (<store>/data)"),
            CommandOption("timestamps", value: "DIR", help: "folder that stands for /timestamps (<store>/timestamps)"),
            CommandOption("store", value: "DIR", help: "folder of the jobs (<home>/syncserver)"),
        ],
        example: "downbeat syncserver --port 8080 --data /srv/data --timestamps /srv/timestamps --store /srv/sync")

    static func run(_ parsed: CommandSyntax.Parsed) async -> ExitCode {
        let text = parsed.value("port") ?? "8080"
        guard let port = UInt16(text) else {
            return fail(.usage, "--port is '\(text)'; legal is a whole number from 0 to 65535")
        }
        let bind = parsed.value("bind") ?? "127.0.0.1"
        let store = parsed.value("store") ?? "\(StateFolder.path)/syncserver"
        let data = parsed.value("data") ?? "\(store)/data"
        let timestamps = parsed.value("timestamps") ?? "\(store)/timestamps"
        do {
            // Only our own folders are made: a wrong word for the operator's is an error, not an empty folder.
            if parsed.value("data") == nil { try Files.makeFolder(data) }
            if parsed.value("timestamps") == nil { try Files.makeFolder(timestamps) }
            let loop = EventLoop(name: "signals")
            let signals = try Signals.stream(on: loop)
            let service = try SyncService(
                SyncService.Options(bind: bind, port: port, data: data, timestamps: timestamps, store: store))
            let shown = bind.contains(":") ? "[\(bind)]" : bind
            StandardOutput.write("sync server listens on http://\(shown):\(service.port)\n")
            StandardOutput.write("  /data is \(data), /timestamps is \(timestamps), jobs are in \(store)\n")
            for await _ in signals { break }
            await service.stop()
            StandardOutput.write("sync server stopped\n")
            return .good
        } catch {
            return fail(.failed, "\(error)")
        }
    }

    private static func fail(_ code: ExitCode, _ sentence: String) -> ExitCode {
        StandardError.write("downbeat syncserver: \(sentence)\n")
        return code
    }
}
