package import Timing

/// A response, with the instants that bound when the camera gave it.
package struct CameraReply: Sendable, Hashable {
    package var body: [UInt8]
    /// When the request was handed to the link, host time.
    package var sent: Timestamp<HostTime>
    /// When the response was read from the kernel, host time.
    package var received: Timestamp<HostTime>

    package init(body: [UInt8], sent: Timestamp<HostTime>, received: Timestamp<HostTime>) {
        self.body = body
        self.sent = sent
        self.received = received
    }
}

/// Why a request to the camera came to nothing; the description is half a sentence.
package enum CameraFault: Error, Sendable, Hashable, CustomStringConvertible {
    case timedOut(CameraCommand, after: Interval)
    case refused(CameraCommand, CameraStatus, words: String?)
    case disconnected(String)
    /// More requests wait than there are sequence numbers for.
    case congested
    /// A response that can't be read.
    case unreadable(CameraCommand)

    package var description: String {
        switch self {
        case .timedOut(let command, let after): "\(command.name) timed out: no answer within \(after.seconds) s"
        case .refused(let command, let status, let words):
            "\(command.name) was answered with \(status)\(words.map { ": \($0)" } ?? "")"
        case .disconnected(let why): "the camera was disconnected: \(why)"
        case .congested: "too many requests wait for the camera"
        case .unreadable(let command): "the answer to \(command.name) can't be read"
        }
    }

    package var failure: CaptureFailure { CaptureFailure(description) }
}

/// The talk with one camera over one link: requests with their sequence, responses, notices, the handshake.
///
/// Pure. A response that nobody waits for (late, or sent twice) is dropped and counted; it can't be taken for another one's, as
/// a sequence is only used again after 253 others.
package struct CameraConversation: Sendable {
    package typealias RequestID = Int64

    package enum Action: Sendable, Hashable {
        case write([UInt8])
        case answer(RequestID, Result<CameraReply, CameraFault>)
        case notice(CameraNotice)
    }

    private struct Waiting: Sendable {
        let id: RequestID
        let command: CameraCommand
        let sent: Timestamp<HostTime>
        let patience: Interval
        var deadline: Timestamp<HostTime> { sent + patience }
    }

    private var reader = CameraFrameReader()
    private var waiting: [UInt8: Waiting] = [:]
    private var lastSequence: UInt8 = 0
    private var lastID: RequestID = 0
    package private(set) var handshakes: Int64 = 0
    package private(set) var strayResponses: Int64 = 0
    /// When the camera was last heard.
    package private(set) var lastHeard: Timestamp<HostTime>?

    package var damagedFrames: Int64 { reader.damagedFrames }

    package init() {}

    /// When `tick` is due.
    package var deadline: Timestamp<HostTime>? { waiting.values.map(\.deadline).min() }

    package mutating func request(
        _ command: CameraCommand, patience: Interval, at now: Timestamp<HostTime>
    ) -> (id: RequestID, actions: [Action]) {
        lastID &+= 1
        guard let sequence = freeSequence() else { return (lastID, [.answer(lastID, .failure(.congested))]) }
        let message = CameraMessage(code: command.code, sequence: sequence, body: command.body)
        guard let bytes = CameraFrame(.toCamera, .message, message.inside).bytes else {
            return (lastID, [.answer(lastID, .failure(.congested))])
        }
        waiting[sequence] = Waiting(id: lastID, command: command, sent: now, patience: patience)
        return (lastID, [.write(bytes)])
    }

    /// 1 to 254, in turn; 255 is the camera's own.
    private mutating func freeSequence() -> UInt8? {
        for _ in 1...254 {
            lastSequence = lastSequence >= 254 ? 1 : lastSequence + 1
            if waiting[lastSequence] == nil { return lastSequence }
        }
        return nil
    }

    package var heartbeat: [UInt8] { CameraFrame(.toCamera, .message, CameraMessage.heartbeat).bytes ?? [] }

    /// Takes a notification in.
    package mutating func receive(_ bytes: [UInt8], at now: Timestamp<HostTime>) -> [Action] {
        reader.take(bytes).flatMap { frame -> [Action] in
            guard frame.direction == .fromCamera else { return [] }
            lastHeard = now
            switch frame.kind {
            case .handshake:
                handshakes &+= 1
                let answer = CameraFrame(.toCamera, .handshake, CameraMessage.handshakeAnswer)
                return answer.bytes.map { [.write($0)] } ?? []
            case .message: return take(frame.inside, at: now)
            case .other: return []
            }
        }
    }

    private mutating func take(_ inside: [UInt8], at now: Timestamp<HostTime>) -> [Action] {
        guard let message = CameraMessage(inside: inside) else { return [] }
        guard let request = waiting[message.sequence], message.sequence != CameraMessage.unsolicited else {
            if message.sequence == CameraMessage.unsolicited || message.code >= 0x2000 || message.code == 0x008A {
                return [.notice(CameraNotice(message))]
            }
            strayResponses &+= 1
            return []
        }
        // A notice may carry any sequence; a response has a status.
        if message.code >= 0x2000 { return [.notice(CameraNotice(message))] }
        waiting[message.sequence] = nil
        let status = CameraStatus(message.code)
        // The result of a permission comes under a code of its own.
        guard status == .ok || message.code == 0x008A || message.code == 0x008B else {
            let words = CameraReplies.words(message.body)
            return [.answer(request.id, .failure(.refused(request.command, status, words: words)))]
        }
        return [.answer(request.id, .success(CameraReply(body: message.body, sent: request.sent, received: now)))]
    }

    /// Ends the requests whose patience is over.
    package mutating func tick(at now: Timestamp<HostTime>) -> [Action] {
        let late = waiting.filter { $0.value.deadline <= now }.sorted { $0.value.id < $1.value.id }
        return late.map { sequence, request in
            waiting[sequence] = nil
            return .answer(request.id, .failure(.timedOut(request.command, after: request.patience)))
        }
    }

    /// The link is gone; all that wait are told.
    package mutating func end(_ why: String) -> [Action] {
        let requests = waiting.values.sorted { $0.id < $1.id }
        waiting = [:]
        reader.reset()
        return requests.map { .answer($0.id, .failure(.disconnected(why))) }
    }
}
