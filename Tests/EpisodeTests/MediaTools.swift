internal import Episode
internal import Foundation
internal import Platform
internal import Testing
internal import Timing

extension VideoFileWriter {
    @discardableResult
    func append(_ bytes: [UInt8], capture: Timestamp<HostTime>, isKey: Bool) throws -> Bool {
        try append(FrameBytes(bytes), capture: capture, isKey: isKey)
    }
}

/// Another program's view of our files.
enum MediaTools {
    struct Failed: Error { let text: String }

    static func run(_ program: String, _ arguments: [String]) throws -> (status: Int32, output: String, errors: String)
    {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [program] + arguments
        let (output, errors) = (Pipe(), Pipe())
        process.standardOutput = output
        process.standardError = errors
        try process.run()
        let text = output.fileHandleForReading.readDataToEndOfFile()
        let complaint = errors.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return (
            process.terminationStatus, String(decoding: text, as: UTF8.self), String(decoding: complaint, as: UTF8.self)
        )
    }

    /// The packets of the first video track as `ffprobe` counts them.
    static func packetCount(_ path: String) throws -> Int {
        let result = try run(
            "ffprobe",
            [
                "-v", "error", "-count_packets", "-select_streams", "v:0", "-show_entries", "stream=nb_read_packets",
                "-of", "csv=p=0", "file:\(path)",
            ])
        guard let count = Int(result.output.trimmingCharacters(in: CharacterSet(charactersIn: ",\n "))) else {
            throw Failed(text: result.errors + result.output)
        }
        return count
    }

    /// Frames that a decoder makes of it, and what it complains of.
    static func decodedFrames(_ path: String) throws -> (count: Int, complaints: String) {
        let result = try run(
            "ffprobe",
            [
                "-v", "error", "-count_frames", "-select_streams", "v:0", "-show_entries", "stream=nb_read_frames",
                "-of", "csv=p=0", "file:\(path)",
            ])
        guard let count = Int(result.output.trimmingCharacters(in: CharacterSet(charactersIn: ",\n "))) else {
            throw Failed(text: result.errors + result.output)
        }
        return (count, result.errors)
    }

    /// The presentation times of all packets in seconds, in file order.
    static func times(_ path: String) throws -> [Double] {
        let result = try run(
            "ffprobe",
            [
                "-v", "error", "-select_streams", "v:0", "-show_entries", "packet=pts_time", "-of", "csv=p=0",
                "file:\(path)",
            ])
        return result.output.split(separator: "\n").compactMap {
            Double($0.trimmingCharacters(in: CharacterSet(charactersIn: ", ")))
        }
    }

    static func entry(_ name: String, _ path: String) throws -> String {
        try run("ffprobe", ["-v", "error", "-show_entries", name, "-of", "csv=p=0", "file:\(path)"]).output
            .trimmingCharacters(in: CharacterSet(charactersIn: ",\n "))
    }
}

/// Pictures and packets to feed the writers with.
enum TestPicture {
    /// A YUYV picture with a bar that moves.
    static func yuyv(width: Int, height: Int, stride: Int, number: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: 128, count: stride * height)
        for row in 0..<height {
            for column in 0..<width {
                bytes[row * stride + column * 2] = UInt8(16 + (column * 3 + row + number * 5) % 220)
            }
        }
        return bytes
    }

    /// Encoded frames made by the ffmpeg program: (bytes, isKey).
    ///
    /// Access units of H.264 are cut at their delimiters, JPEG pictures at their markers.
    static func encoded(
        _ codec: String, frames: Int, in folder: String, size: String = "320x240"
    ) throws -> [[UInt8]] {
        let path = "\(folder)/source.\(codec)"
        let encoder =
            codec == "mjpeg"
            ? ["-c:v", "mjpeg", "-q:v", "5", "-f", "mjpeg"]
            : codec == "hevc"
                ? ["-c:v", "libx265", "-x265-params", "bframes=0:keyint=10:aud=1:log-level=none", "-f", "hevc"]
                : ["-c:v", "libx264", "-bf", "0", "-g", "10", "-x264-params", "aud=1:repeat-headers=1", "-f", "h264"]
        let result = try MediaTools.run(
            "ffmpeg",
            ["-v", "error", "-y", "-f", "lavfi", "-i", "testsrc2=s=\(size):r=30", "-frames:v", String(frames)]
                + encoder + [path])
        guard result.status == 0 else { throw MediaTools.Failed(text: result.errors) }
        let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
        let mark: [UInt8] = codec == "mjpeg" ? [0xFF, 0xD8, 0xFF] : codec == "hevc" ? [0, 0, 1, 0x46] : [0, 0, 1, 9]
        var starts: [Int] = []
        for index in 0..<max(0, bytes.count - mark.count) where Array(bytes[index..<index + mark.count]) == mark {
            starts.append(codec != "mjpeg" && index > 0 && bytes[index - 1] == 0 ? index - 1 : index)
        }
        return starts.enumerated().map { number, start in
            Array(bytes[start..<(number + 1 < starts.count ? starts[number + 1] : bytes.count)])
        }
    }
}
