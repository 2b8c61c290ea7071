internal import Devices
internal import Glibc
internal import Platform
internal import Protocol
internal import Timing

/// What a scripted driver does next.
enum DriverStep: Sendable {
    /// Hands over a frame; its bytes are its sequence number.
    case frame(sequence: UInt32, flags: UInt32 = 0x2000, bytes: Int? = nil)
    case failure(Int32)
}

/// A driver that replays a list of buffers and errors, in place of the kernel.
final class ScriptedCamera: V4L2Port {
    static let node = CameraNode(path: "/dev/video7", card: "Scripted", bus: "script:0")
    static let width = 16
    static let height = 16

    private var steps: ArraySlice<DriverStep>
    private let pipe: [Int32]
    private var free: [Int] = []

    init(_ steps: [DriverStep]) {
        self.steps = steps[...]
        var ends: [Int32] = [0, 0]
        _ = Glibc.pipe(&ends)
        pipe = ends
    }

    var descriptor: Int32 { pipe[0] }

    func capability() throws(Errno) -> V4L2Capability {
        // V4L2_CAP_VIDEO_CAPTURE and V4L2_CAP_STREAMING.
        V4L2Capability(driver: "script", card: "Scripted", bus: "script:0", flags: 0x0400_0001)
    }

    func offers() -> [V4L2Offer] {
        [V4L2Offer(fourCC: FourCC(.yuyv), sizes: [V4L2Offer.Size(width: 16...16, height: 16...16, rates: [30])])]
    }

    func setPicture(_ wanted: V4L2Picture) throws(Errno) -> V4L2Picture {
        V4L2Picture(fourCC: FourCC(.yuyv), width: Self.width, height: Self.height, bytesPerLine: 2 * Self.width)
    }

    func setRate(_ rate: Double) throws(Errno) -> Double? { 25 }

    func mapBuffers(_ count: Int) throws(Errno) -> (count: Int, flags: UInt32) { (4, 0x2000) }

    func queue(_ index: Int) throws(Errno) { free.append(index) }

    func dequeue() throws(Errno) -> V4L2Filled? {
        guard !free.isEmpty, let step = steps.popFirst() else {
            var byte: UInt8 = 0
            _ = read(pipe[0], &byte, 1)
            return nil
        }
        switch step {
        case .failure(let number): throw Errno(rawValue: number)
        case .frame(let sequence, let flags, let bytes):
            return V4L2Filled(
                index: free.removeFirst(), bytesUsed: bytes ?? 512, flags: flags, sequence: sequence,
                stamp: Timestamp(nanoseconds: HostClock.now.nanoseconds))
        }
    }

    func bytes(of buffer: V4L2Filled, limit: Int) -> FrameBytes {
        FrameBytes(
            [UInt8](repeating: UInt8(truncatingIfNeeded: buffer.sequence), count: min(buffer.bytesUsed, limit)))
    }

    func streamOn() throws(Errno) {
        var byte: UInt8 = 1
        _ = write(pipe[1], &byte, 1)
    }

    func streamOff() {}

    func close() { for end in pipe { _ = Glibc.close(end) } }
}
