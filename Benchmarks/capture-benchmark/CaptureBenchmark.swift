internal import Agent
internal import Devices
internal import Episode
internal import Glibc
internal import Platform
internal import Protocol
internal import Synchronization
internal import Timing

/// Records cameras as the agent does, for so many frames each: `capture-benchmark FOLDER FRAMES NODE...`.
///
/// Everything between the camera and the closed file is the product's: V4L2, ring, gate, writer thread, time stamps,
/// fragments with an fdatasync each second, the index at the end. What the process took is measured from outside.
@main struct CaptureBenchmark {
    static func main() async throws {
        let arguments = Array(CommandLine.arguments.dropFirst())
        guard arguments.count >= 3, let frames = Int(arguments[1]), frames > 0 else {
            print("usage: capture-benchmark FOLDER FRAMES NODE...")
            exit(2)
        }
        let folder = arguments[0]
        try Files.makeFolder(folder)
        let nodes = arguments.dropFirst(2).map { path in
            CameraNode(path: path, card: path, bus: path)
        }
        try await withThrowingTaskGroup(of: String.self) { group in
            for (index, node) in nodes.enumerated() {
                group.addTask { try await record(node, nodes, "cam\(index)", folder: folder, frames: frames) }
            }
            for try await line in group { print(line) }
        }
    }

    private static func record(
        _ node: CameraNode, _ nodes: [CameraNode], _ name: String, folder: String, frames: Int
    ) async throws -> String {
        let stream = StreamID(unchecked: name)
        var options = V4L2Camera.Options(device: node.path)
        options.wish.width = environment("CAMERA_SIZE").flatMap { Int($0.split(separator: "x").first ?? "") } ?? 1920
        options.wish.height = environment("CAMERA_SIZE").flatMap { Int($0.split(separator: "x").last ?? "") } ?? 1080
        let machine = V4L2Camera.Machine(
            nodes: { nodes }, connect: { path throws(Errno) in try V4L2Node(path: path) })
        let camera = V4L2Camera(stream, options, machine: machine)
        let description = try await camera.open()
        let recorder = StreamRecorder(stream) { notice in
            if case .failed(let text, _) = notice { print("\(name): \(text)") }
        }
        try await camera.start(recorder.ring)
        let start = HostClock.now + .milliseconds(100)
        let rate = description.nominalRate ?? 30
        let stop = start + .seconds(Double(frames) / rate)
        try await recorder.prepare(
            description, WriterPlace(folder: folder, clockDomain: "benchmark", longest: stop - start), start: start,
            stop: stop)
        await recorder.awaitGate()
        await camera.stop()
        await camera.close()
        let entry = await recorder.finish()
        let gaps = entry?.gapCount ?? 0
        return
            "\(name) frames=\(entry?.frameCount ?? 0) lost=\(entry?.dropped ?? -1) gaps=\(gaps) \(entry?.errors ?? [])"
    }

    private static func environment(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }
}
