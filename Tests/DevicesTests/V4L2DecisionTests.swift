internal import Devices
internal import Platform
internal import Protocol
internal import Testing
internal import Timing

/// The cameras' pure parts.
@Suite struct V4L2DecisionTests {
    // MARK: Losses by the counter

    struct Counting: Sendable, CustomTestStringConvertible {
        let name: String
        let sequences: [UInt32]
        let findings: [SequenceTracker.Finding]
        var testDescription: String { name }
    }

    /// Frames come a thirtieth of a second apart, whatever the counter says.
    @Test(arguments: [
        Counting(name: "one by one", sequences: [7, 8, 9], findings: [.continuous, .continuous, .continuous]),
        Counting(
            name: "the counter's own wrap", sequences: [4_294_967_294, 4_294_967_295, 0, 1],
            findings: [.continuous, .continuous, .continuous, .continuous]),
        Counting(
            name: "a loss across the wrap", sequences: [4_294_967_295, 2], findings: [.continuous, .lost(2)]),
        Counting(name: "one lost, then two", sequences: [0, 2, 5], findings: [.continuous, .lost(1), .lost(2)]),
        Counting(
            name: "a reset after a standby", sequences: [99, 100, 0, 1],
            findings: [.continuous, .continuous, .newEpoch, .continuous]),
        Counting(name: "a jump that time doesn't allow", sequences: [0, 5000], findings: [.continuous, .newEpoch]),
        Counting(
            name: "a counter that stands still", sequences: [0, 0, 0, 0, 0],
            findings: [.continuous, .continuous, .continuous, .noCounter, .continuous]),
        Counting(
            name: "a number that repeats and is made up for", sequences: [4, 5, 5, 7, 9],
            findings: [.continuous, .continuous, .continuous, .continuous, .lost(1)]),
        Counting(
            name: "a counter that wakes up", sequences: [0, 0, 0, 0, 9, 10, 12],
            findings: [.continuous, .continuous, .continuous, .noCounter, .continuous, .continuous, .lost(1)]),
    ])
    func `Losses are told from the driver's counter`(_ row: Counting) {
        var tracker = SequenceTracker(rate: 30)
        var now = Timestamp<HostTime>(nanoseconds: 1_000_000_000)
        var findings: [SequenceTracker.Finding] = []
        for sequence in row.sequences {
            findings.append(tracker.next(sequence, arrival: now))
            now += .milliseconds(33)
        }
        #expect(findings == row.findings)
    }

    @Test func `A long stall explains a large jump of the counter`() {
        var tracker = SequenceTracker(rate: 30)
        let start = Timestamp<HostTime>(nanoseconds: 0)
        _ = tracker.next(0, arrival: start)
        // 100 s at 30 frames/s are 3000 frames.
        #expect(tracker.next(3000, arrival: start + .seconds(100)) == .lost(2999))
    }

    // MARK: Stamps

    /// Values of linux/videodev2.h: timestamp flags 0x2000 monotonic, 0x4000 copy; 0x10000 start of exposure.
    @Test(
        arguments: [
            (0x0000_2000, "driver, CLOCK_MONOTONIC, end of frame"),
            (0x0001_2001, "driver, CLOCK_MONOTONIC, start of exposure"),
            (0x0000_4000, "arrival in the program, CLOCK_MONOTONIC: the driver copies stamps of an unknown clock"),
            (0x0000_0000, "arrival in the program, CLOCK_MONOTONIC: the driver doesn't name its clock"),
        ] as [(UInt32, String)])
    func `A stamp's origin is in its flags`(flags: UInt32, words: String) {
        #expect(BufferStamp(flags: flags).words == words)
    }

    struct Stamping: Sendable, CustomTestStringConvertible {
        let name: String
        let flags: UInt32
        /// Of the driver, against the arrival.
        let ageMilliseconds: Int64
        let byDriver: Bool
        var testDescription: String { name }
    }

    @Test(arguments: [
        Stamping(name: "a healthy stamp", flags: 0x2000, ageMilliseconds: 20, byDriver: true),
        Stamping(name: "no clock named", flags: 0, ageMilliseconds: 20, byDriver: false),
        Stamping(name: "a copied stamp", flags: 0x4000, ageMilliseconds: 20, byDriver: false),
        Stamping(name: "a stamp in the future", flags: 0x2000, ageMilliseconds: -5000, byDriver: false),
        Stamping(name: "a stamp of another clock", flags: 0x2000, ageMilliseconds: 900_000, byDriver: false),
    ])
    func `A frame is stamped by the driver only where that can be right`(_ row: Stamping) {
        var stamper = FrameStamper(rate: 30)
        let arrival = Timestamp<HostTime>(nanoseconds: 3_600_000_000_000)
        let stamp = arrival - .milliseconds(row.ageMilliseconds)
        let result = stamper.stamp(filled(flags: row.flags, stamp: stamp), arrival: arrival)
        #expect(result.capture == (row.byDriver ? stamp : arrival))
        // A thirtieth of a second, or the driver's millisecond.
        #expect(result.uncertainty == (row.byDriver ? .milliseconds(1) : .nanoseconds(33_333_333)))
        #expect((result.change == nil) == row.byDriver)
    }

    @Test func `A stamp in advance is kept, and is off by that much`() {
        var stamper = FrameStamper(rate: 30)
        let arrival = Timestamp<HostTime>(nanoseconds: 3_600_000_000_000)
        let early = stamper.stamp(filled(flags: 0x2000, stamp: arrival + .milliseconds(30)), arrival: arrival)
        #expect(early.capture == arrival + .milliseconds(30))
        #expect(early.uncertainty == .milliseconds(30))
        #expect(early.change?.contains("in advance, 30.0 ms") == true)
        let next = stamper.stamp(
            filled(flags: 0x2000, stamp: arrival + .milliseconds(50)), arrival: arrival + .milliseconds(60))
        #expect(next.uncertainty == .milliseconds(30))
        #expect(next.change == nil)
    }

    @Test func `A repeated stamp is replaced once, and told once each way`() {
        var stamper = FrameStamper(rate: 30)
        var arrival = Timestamp<HostTime>(nanoseconds: 1_000_000_000)
        var changes: [Bool] = []
        var byDriver: [Bool] = []
        for offset in [0, 33, 33, 33, 99, 132] as [Int64] {
            let stamp = Timestamp<HostTime>(nanoseconds: 990_000_000) + .milliseconds(offset)
            let result = stamper.stamp(filled(flags: 0x2000, stamp: stamp), arrival: arrival)
            changes.append(result.change != nil)
            byDriver.append(result.capture == stamp)
            arrival += .milliseconds(33)
        }
        #expect(byDriver == [true, true, false, false, true, true])
        #expect(changes == [false, false, true, false, true, false])
    }

    private func filled(flags: UInt32, stamp: Timestamp<HostTime>) -> V4L2Filled {
        V4L2Filled(
            index: 0, bytesUsed: 1, flags: flags, sequence: 0, stamp: Timestamp(nanoseconds: stamp.nanoseconds))
    }

    // MARK: Rates and formats

    @Test(
        arguments: [
            (30, 1, 30), (59.94, 1001, 60_000), (29.97, 1001, 30_000), (12.5, 1000, 12_500), (0.5, 1000, 500),
            (120, 1, 120), (23.976, 1001, 24_000),
        ] as [(Double, UInt32, UInt32)])
    func `A rate is a fraction of a second`(rate: Double, numerator: UInt32, denominator: UInt32) {
        #expect(FrameInterval(rate: rate) == FrameInterval(numerator, denominator))
    }

    @Test(arguments: [.nan, .infinity, -1, 0, 1e12] as [Double])
    func `A rate that is none doesn't crash`(rate: Double) {
        #expect(FrameInterval(rate: rate).rate != nil)
    }

    @Test func `An interval of zero has no rate`() {
        #expect(FrameInterval(0, 30).rate == nil)
        #expect(FrameInterval(1, 0).rate == nil)
    }

    struct Choosing: Sendable, CustomTestStringConvertible {
        let name: String
        let format: V4L2Choice.Format
        let size: (Int, Int)
        let rate: Double
        let chosen: VideoFormat.Encoding?
        var testDescription: String { name }
    }

    /// A USB 2 camera: raw pictures are slow when they are large.
    private static let camera = [
        offer(.yuyv, [(640, 480, [30]), (1280, 720, [10])]),
        offer(.mjpeg, [(640, 480, [30]), (1280, 720, [30])]),
        offer(.h264, [(1280, 720, [30]), (1920, 1080, [30])]),
    ]

    @Test(arguments: [
        Choosing(name: "auto takes what is compressed", format: .auto, size: (640, 480), rate: 30, chosen: .mjpeg),
        Choosing(name: "auto looks at the size first", format: .auto, size: (1920, 1080), rate: 30, chosen: .h264),
        Choosing(name: "a named format is kept", format: .yuyv, size: (1280, 720), rate: 30, chosen: .yuyv),
        Choosing(name: "a format that isn't there", format: .nv12, size: (640, 480), rate: 30, chosen: nil),
        Choosing(name: "a size that isn't there", format: .auto, size: (800, 600), rate: 30, chosen: .mjpeg),
    ])
    func `The format suits size and rate`(_ row: Choosing) {
        var wish = V4L2Choice.Wish()
        (wish.format, wish.width, wish.height, wish.rate) = (row.format, row.size.0, row.size.1, row.rate)
        #expect(V4L2Choice.fourCC(for: wish, among: Self.camera)?.encoding == row.chosen)
    }

    @Test func `A rate that only raw pictures reach decides for them`() {
        let offers = [Self.offer(.mjpeg, [(640, 480, [15])]), Self.offer(.nv12, [(640, 480, [60])])]
        var wish = V4L2Choice.Wish()
        (wish.width, wish.height, wish.rate) = (640, 480, 60)
        #expect(V4L2Choice.fourCC(for: wish, among: offers)?.encoding == .nv12)
    }

    @Test func `What can't be recorded is never chosen`() {
        // 'GREY', linux/videodev2.h.
        let grey = V4L2Offer(fourCC: FourCC(rawValue: 0x5945_5247), sizes: [])
        #expect(V4L2Choice.fourCC(for: V4L2Choice.Wish(), among: [grey]) == nil)
        #expect(grey.fourCC.description == "GREY")
    }

    private static func offer(_ encoding: VideoFormat.Encoding, _ sizes: [(Int, Int, [Double])]) -> V4L2Offer {
        V4L2Offer(
            fourCC: FourCC(encoding),
            sizes: sizes.map { V4L2Offer.Size(width: $0.0...$0.0, height: $0.1...$0.1, rates: $0.2) })
    }

    @Test func `Abilities are one line for each format`() {
        #expect(
            V4L2Choice.abilities(Self.camera) == [
                "yuyv: 640x480 at 30; 1280x720 at 10", "mjpeg: 640x480 at 30; 1280x720 at 30",
                "h264: 1280x720 at 30; 1920x1080 at 30",
            ])
    }

    // MARK: Key frames

    @Test(
        arguments: [
            ([0, 0, 0, 1, 0x67, 1, 0, 0, 1, 0x68, 2, 0, 0, 1, 0x65, 9], .h264, true),
            ([0, 0, 0, 1, 0x41, 9, 9], .h264, false),
            ([0, 0, 1, 0x26, 1, 9], .hevc, true),
            ([0, 0, 1, 0x02, 1, 9], .hevc, false),
            ([0, 0, 1], .h264, false),
            ([], .h264, false),
            ([0xFF, 0xD8], .mjpeg, true),
        ] as [([UInt8], VideoFormat.Encoding, Bool)])
    func `A key frame is told from its bytes`(bytes: [UInt8], encoding: VideoFormat.Encoding, isKey: Bool) {
        #expect(AccessUnit.isKey(FrameBytes(bytes), encoding) == isKey)
    }

    // MARK: Which camera

    private static let nodes = [
        CameraNode(
            path: "/dev/video0", card: "HD Webcam", bus: "usb-0000:00:14.0-1", serial: "A1",
            links: ["/dev/v4l/by-id/usb-Acme_HD_A1-video-index0", "/dev/v4l/by-path/pci-usb-0:1-video-index0"]),
        CameraNode(
            path: "/dev/video1", card: "HD Webcam", bus: "usb-0000:00:14.0-1", serial: "A1",
            links: ["/dev/v4l/by-id/usb-Acme_HD_A1-video-index1"], capturesVideo: false),
        // Two of one model without a serial number: they share the link by-id.
        CameraNode(
            path: "/dev/video2", card: "Cheap", bus: "usb-0000:00:14.0-2",
            links: ["/dev/v4l/by-id/usb-Cheap-video-index0", "/dev/v4l/by-path/pci-usb-0:2-video-index0"]),
        CameraNode(
            path: "/dev/video4", card: "Cheap", bus: "usb-0000:00:14.0-3",
            links: ["/dev/v4l/by-id/usb-Cheap-video-index0", "/dev/v4l/by-path/pci-usb-0:3-video-index0"]),
    ]

    @Test(arguments: [
        ("/dev/v4l/by-id/usb-Acme_HD_A1-video-index0", "/dev/video0"), ("A1", "/dev/video0"),
        ("HD Webcam", "/dev/video0"), ("usb-0000:00:14.0-3", "/dev/video4"),
        ("pci-usb-0:2-video-index0", "/dev/video2"),
    ])
    func `A camera is found by each of its names`(name: String, path: String) {
        guard case .found(let node, let warning) = CameraSelection(name, among: Self.nodes) else {
            Issue.record("not found")
            return
        }
        #expect(node.path == path)
        #expect(warning == nil)
    }

    @Test func `A node's number is taken with a warning that names the identity`() {
        guard case .found(let node, let warning) = CameraSelection("/dev/video4", among: Self.nodes) else {
            Issue.record("not found")
            return
        }
        #expect(node.path == "/dev/video4")
        #expect(warning?.contains("'/dev/v4l/by-path/pci-usb-0:3-video-index0'") == true)
    }

    @Test func `A name that fits two cameras, a metadata node and an absent camera are refused with a cure`() {
        guard case .refused(let cause, let cure) = CameraSelection("Cheap", among: Self.nodes) else {
            Issue.record("not refused")
            return
        }
        #expect(cause == "'Cheap' fits 2 cameras")
        #expect(cure.contains("pci-usb-0:2") && cure.contains("pci-usb-0:3"))
        guard case .refused(let metadata, _) = CameraSelection("/dev/video1", among: Self.nodes) else {
            Issue.record("not refused")
            return
        }
        #expect(metadata.contains("metadata"))
        guard case .missing(_, let plug) = CameraSelection("B2", among: []) else {
            Issue.record("not missing")
            return
        }
        #expect(plug == "plug it in")
    }

    @Test func `An identity is the serial number's link, else the port, else the bus, and always unique`() {
        let identities = Self.nodes.filter(\.capturesVideo).map { $0.identity(among: Self.nodes) }
        #expect(
            identities == [
                "/dev/v4l/by-id/usb-Acme_HD_A1-video-index0", "/dev/v4l/by-path/pci-usb-0:2-video-index0",
                "/dev/v4l/by-path/pci-usb-0:3-video-index0",
            ])
        // As vivid's: one path for both, and two buses.
        let virtual = [0, 1].map { number in
            CameraNode(
                path: "/dev/video\(number)", card: "vivid", bus: "platform:vivid-00\(number)",
                links: ["/dev/v4l/by-path/platform-vivid.0-video-index0"])
        }
        #expect(virtual.map { $0.identity(among: virtual) } == ["platform:vivid-000", "platform:vivid-001"])
        let nameless = CameraNode(path: "/dev/video0", card: "x", bus: "")
        #expect(nameless.identity(among: [nameless]) == "/dev/video0")
    }

    // MARK: Faults

    @Test(
        arguments: [
            (16, .format, .busy, "held by process 7 (cheese)", "close"),
            (13, .open, .accessDenied, "may not use", "group 'video'"),
            (2, .open, .notFound, "isn't attached", "plug it in"),
            (19, .dequeue, .disconnected, "unplugged", "plug it in again"),
            (28, .streamOn, .busy, "USB bus has no room", "another USB controller"),
            (5, .dequeue, .inputOutput, "broke off", "shorter cable"),
            (22, .format, .unsupported, "refuses VIDIOC_S_FMT", "devices"),
            (12, .buffers, .inputOutput, "no memory", "smaller size"),
        ] as [(Int32, V4L2Fault.Operation, DeviceError.Code, String, String)])
    func `Each errno is a sentence with cause and cure`(
        errno: Int32, operation: V4L2Fault.Operation, code: DeviceError.Code, cause: String, cure: String
    ) {
        let fault = V4L2Fault(
            Errno(rawValue: errno), during: operation, path: "/dev/video0", name: "HD Webcam", demand: 18.4,
            holder: { "process 7 (cheese)" })
        #expect(fault.code == code)
        #expect(fault.cause.contains(cause))
        #expect(fault.cause.contains("/dev/video0"))
        #expect(fault.cure.contains(cure))
    }

    @Test func `No errno is without a sentence`() {
        for operation in V4L2Fault.Operation.allCases {
            for number in Int32(1)...133 {
                let fault = V4L2Fault(Errno(rawValue: number), during: operation, path: "/dev/video0")
                #expect(fault.cause.contains("/dev/video0") && !fault.cure.isEmpty)
            }
        }
    }
}
