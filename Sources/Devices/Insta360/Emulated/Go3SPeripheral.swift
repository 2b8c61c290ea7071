internal import Glibc
package import Timing

/// A recording of an emulated camera.
package struct Go3SRecording: Sendable, Hashable {
    /// When the first frame was taken, and when the last one was; host time of the emulator.
    package var begin: Timestamp<HostTime>
    package var end: Timestamp<HostTime>
    /// The files' names on the card, in order.
    package var names: [String]
}

/// An emulated Go 3S over the air: the real one's service and bytes, and its faults.
///
/// Concurrency: used by one thread; see `EmulatedPeripheral`.
package final class Go3SPeripheral: EmulatedPeripheral {
    package private(set) var script: Go3SScript
    /// Called at the end of a recording.
    package var onRecording: ((Go3SRecording) -> Void)?
    /// What it was told, in order, for tests.
    package private(set) var commands: [UInt16] = []
    package private(set) var heartbeats = 0
    package private(set) var connections = 0

    private var server: ATTServer
    private let wall: () -> Timestamp<WallTime>
    private var link: (any PeripheralLink)?
    private var reader = CameraFrameReader()
    private var hasShaken = false
    private var shakeBy: Timestamp<HostTime>?
    private var held: [CameraMessage] = []
    private var recordingSince: Timestamp<HostTime>?
    private var began: Timestamp<WallTime>?
    private var count = 0
    private var queue: [(at: Timestamp<HostTime>, bytes: [UInt8])] = []
    private var downUntil = Timestamp<HostTime>(nanoseconds: 0)
    private var downAt: (Timestamp<HostTime>, Interval)?
    private var stopsAt: Timestamp<HostTime>?

    /// Its dates come from `wall`, the true wall clock.
    package init(_ script: Go3SScript, wall: @escaping () -> Timestamp<WallTime>) {
        (self.script, self.wall) = (script, wall)
        server = ATTServer([
            .init(BluetoothUUID(0x1800), [.init(GATTNumbers.deviceName, .read, value: Array(script.name.utf8))]),
            .init(BluetoothUUID(0x1801), []),
            .init(
                CameraTarget.service,
                [.init(CameraTarget.write, [.write, .writeWithoutResponse]), .init(CameraTarget.notify, .notify)]),
        ])
    }

    package var name: String { script.name }
    package var advertising: [UInt8] { [3, 0x03, 0x80, 0xBE] }
    package var isRecording: Bool { recordingSince != nil }

    package func isAdvertising(at now: Timestamp<HostTime>) -> Bool { link == nil && now >= downUntil }

    package func connected(_ link: any PeripheralLink, at now: Timestamp<HostTime>) {
        self.link = link
        connections += 1
        (hasShaken, shakeBy, held) = (!script.handshakes, nil, [])
        reader.reset()
    }

    package func disconnected(at now: Timestamp<HostTime>) {
        link = nil
        queue = []
        server.disconnected()
    }

    package func add(_ fault: Go3SScript.Fault) { script.faults.append(fault) }

    package func received(_ packet: [UInt8], at now: Timestamp<HostTime>) {
        let (answers, events) = server.receive(packet)
        for answer in answers { link?.send(answer) }
        for case .written(CameraTarget.write, let bytes) in events {
            for frame in reader.take(bytes) where frame.direction == .toCamera { take(frame, at: now) }
        }
    }

    private func take(_ frame: CameraFrame, at now: Timestamp<HostTime>) {
        switch frame.kind {
        case .handshake:
            guard frame.inside == CameraMessage.handshakeAnswer else { return }
            (hasShaken, shakeBy) = (true, nil)
            let waiting = held
            held = []
            for message in waiting { execute(message, at: now) }
        case .message:
            if CameraMessage.isHeartbeat(frame.inside) {
                heartbeats += 1
                send(.message, CameraMessage.heartbeat, at: now)
                return
            }
            guard let message = CameraMessage(inside: frame.inside) else { return }
            guard hasShaken else {
                // The first command makes it ask for the handshake; the command waits.
                held.append(message)
                if shakeBy == nil {
                    shakeBy = now + .seconds(5)
                    send(.handshake, CameraMessage.handshakeCall, at: now)
                }
                return
            }
            execute(message, at: now)
        case .other: break
        }
    }

    // MARK: Commands

    private func execute(_ message: CameraMessage, at now: Timestamp<HostTime>) {
        commands.append(message.code)
        switch message.code {
        case 0x0002: answer(message, at: now)
        case 0x0004: start(message, at: now)
        case 0x0005: stop(message, at: now)
        case 0x000F:
            var inner = ProtobufFields()
            inner.add(1, .number(isRecording ? 4 : 0))
            var outer = ProtobufFields()
            outer.add(1, .bytes(inner.bytes))
            answer(message, outer.bytes, at: now)
        case 0x0019:
            var fields = ProtobufFields()
            fields.add(1, .number(UInt64(clamping: script.battery)))
            fields.add(2, .number(0))
            answer(message, fields.bytes, at: now)
        case 0x0027:
            var granted = CameraAuthorization.granted
            for case .permission(let answer, _) in script.faults { granted = answer }
            let numbers: [CameraAuthorization: UInt64] = [
                .granted: 1, .required: 2, .pending: 3, .rejected: 4, .timedOut: 5, .systemBusy: 6,
                .connectedByOtherDevice: 7,
            ]
            answer(message, Self.number(numbers[granted] ?? 0), at: now)
        case 0x0056:
            answer(message, at: now)
            var outcome = CameraAuthorization.granted
            for case .permission(_, let then) in script.faults { outcome = then }
            let numbers: [CameraAuthorization: UInt64] = [
                .granted: 1, .rejected: 0, .timedOut: 2, .cancelled: 3, .systemBusy: 4, .connectedByOtherDevice: 5,
            ]
            say(0x008A, Self.number(numbers[outcome] ?? 9), at: now + .milliseconds(200))
        default: answer(message, status: .notImplemented, at: now)
        }
    }

    private static func number(_ value: UInt64) -> [UInt8] {
        var fields = ProtobufFields()
        fields.add(1, .number(value))
        return fields.bytes
    }

    private func start(_ message: CameraMessage, at now: Timestamp<HostTime>) {
        if isRecording || uses({ if case .busy = $0 { true } else { false } }) {
            return answer(message, status: .error, words: "camera is busy", at: now)
        }
        if uses({ if case .startsNothing = $0 { true } else { false } }) { return answer(message, at: now) }
        recordingSince = now + script.startLatency
        began = wall() + script.startLatency
        for case .disconnect(let after, let seconds) in script.faults {
            downAt = (now + .seconds(after), .seconds(seconds))
        }
        for case .stopsItself(let after) in script.faults { stopsAt = now + .seconds(after) }
        if uses({ if case .startAnswerLost = $0 { true } else { false } }) { return }
        answer(message, at: now + script.answerDelay)
    }

    private func stop(_ message: CameraMessage, at now: Timestamp<HostTime>) {
        guard isRecording else { return answer(message, status: .error, words: "not capturing", at: now) }
        let names = finish(at: now)
        if uses({ if case .stopAnswerLost = $0 { true } else { false } }) { return }
        let hidesPath = script.faults.contains { if case .noPath = $0 { true } else { false } }
        var fields = ProtobufFields()
        if !hidesPath, let name = names.first { fields.add(1, .bytes(Array("/DCIM/Camera01/\(name)".utf8))) }
        answer(message, fields.bytes, at: now + script.answerDelay)
    }

    /// Ends the recording; gives back the names of its files.
    @discardableResult
    private func finish(at now: Timestamp<HostTime>) -> [String] {
        guard let begin = recordingSince, let began else { return [] }
        (recordingSince, self.began, stopsAt) = (nil, nil, nil)
        var segments = 1
        for case .segments(let count) in script.faults { segments = count }
        let length = max(now - begin, .milliseconds(1))
        let names = (0..<segments).map { index -> String in
            count += 1
            // Segments of a short emulated clip are a second apart at least, so that each has a name.
            let step = max(length / Int64(segments), .seconds(1))
            return Self.fileName(began + script.clockAhead + step * Int64(index), count)
        }
        onRecording?(Go3SRecording(begin: begin, end: max(begin, now - script.earlyEnd), names: names))
        return names
    }

    /// `VID_20260401_120000_00_007.mp4`.
    package static func fileName(_ instant: Timestamp<WallTime>, _ index: Int) -> String {
        var seconds = time_t(instant.nanoseconds / 1_000_000_000)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        func pad(_ value: Int32, _ width: Int = 2) -> String {
            let digits = String(value)
            return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
        }
        let date = pad(parts.tm_year + 1900, 4) + pad(parts.tm_mon + 1) + pad(parts.tm_mday)
        let clock = pad(parts.tm_hour) + pad(parts.tm_min) + pad(parts.tm_sec)
        return "VID_\(date)_\(clock)_00_\(pad(Int32(clamping: index), 3)).mp4"
    }

    /// Whether a fault of a kind is due; one that counts is one less.
    private func uses(_ isKind: (Go3SScript.Fault) -> Bool) -> Bool {
        guard let index = script.faults.firstIndex(where: isKind) else { return false }
        switch script.faults[index] {
        case .busy(let left): script.faults[index] = .busy(left - 1)
        case .startAnswerLost(let left): script.faults[index] = .startAnswerLost(left - 1)
        case .stopAnswerLost(let left): script.faults[index] = .stopAnswerLost(left - 1)
        case .startsNothing(let left): script.faults[index] = .startsNothing(left - 1)
        default: return true
        }
        switch script.faults[index] {
        case .busy(let left), .startAnswerLost(let left), .stopAnswerLost(let left), .startsNothing(let left):
            if left <= 0 { script.faults.remove(at: index) }
            return left >= 0
        default: return true
        }
    }

    // MARK: Answers

    private func answer(
        _ message: CameraMessage, _ body: [UInt8] = [], status: CameraStatus = .ok, words: String? = nil,
        at due: Timestamp<HostTime>
    ) {
        var body = body
        if let words {
            var fields = ProtobufFields()
            fields.add(1, .number(1))
            fields.add(2, .bytes(Array(words.utf8)))
            body = fields.bytes
        }
        let reply = CameraMessage(code: status.code, sequence: message.sequence, body: body)
        send(.message, reply.inside, at: due)
    }

    private func say(_ code: UInt16, _ body: [UInt8], at due: Timestamp<HostTime>) {
        send(.message, CameraMessage(code: code, sequence: CameraMessage.unsolicited, body: body).inside, at: due)
    }

    private func send(_ kind: CameraFrame.Kind, _ inside: [UInt8], at due: Timestamp<HostTime>) {
        guard let bytes = CameraFrame(.fromCamera, kind, inside).bytes, queue.count < 1_000 else { return }
        queue.append((due, bytes))
    }

    // MARK: Time

    package func step(at now: Timestamp<HostTime>) -> Timestamp<HostTime>? {
        if let (at, length) = downAt, at <= now {
            downAt = nil
            downUntil = now + length
            link?.disconnect()
        }
        if let shakeBy, shakeBy <= now {
            self.shakeBy = nil
            link?.disconnect()
        }
        if let stopsAt, stopsAt <= now {
            finish(at: now)
            say(0x2009, [], at: now)
        }
        queue.sort { $0.at < $1.at }
        while let first = queue.first, first.at <= now {
            queue.removeFirst()
            let size = max(server.mtu - 3, 20)
            var rest = first.bytes[...]
            while !rest.isEmpty {
                if let packet = server.notification(of: CameraTarget.notify, Array(rest.prefix(size))) {
                    link?.send(packet)
                }
                rest = rest.dropFirst(size)
            }
        }
        return [queue.first?.at, downAt?.0, shakeBy, stopsAt].compactMap { $0 }.min()
    }
}
