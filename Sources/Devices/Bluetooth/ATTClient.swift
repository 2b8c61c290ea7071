package import Timing

/// The client's side of the attribute protocol: one request at a time, answers to the peer's own requests, and what is
/// dead or doesn't belong.
///
/// Pure: events in, actions out. Vol 3 Part F 3.3: a request that isn't answered within 30 s ends the bearer.
package struct ATTClient: Sendable {
    package typealias RequestID = UInt64

    package enum Action: Sendable, Hashable {
        case send([UInt8])
        case answer(RequestID, Result<ATTPacket, LowEnergyError>)
        /// A notification or an indication.
        case deliver(ATTPacket.Value, at: Timestamp<HostTime>)
        /// The bearer can't be used any more.
        case breakLink(DisconnectReason)
    }

    private struct Waiting: Sendable, Hashable {
        let id: RequestID
        let packet: ATTPacket
        let deadline: Timestamp<HostTime>
        let patience: Interval
    }

    /// Vol 3 Part F 3.3.3.
    package static let transactionLimit = Interval.seconds(30)
    package static let defaultMTU = 23
    private static let mostWaiting = 64

    /// The largest packet in both directions.
    package private(set) var mtu = Self.defaultMTU
    /// Packets that can't be read, or answer nothing that was asked.
    package private(set) var strayPackets = 0
    private let ownMTU: Int
    private var queue: [Waiting] = []
    private var outstanding: (waiting: Waiting, sent: Timestamp<HostTime>, isAbandoned: Bool)?
    private var nextID: RequestID = 0
    private var ended: DisconnectReason?

    /// - Parameter ownMTU: the largest packet that this side takes.
    package init(ownMTU: Int) { self.ownMTU = max(Self.defaultMTU, min(ownMTU, 0xFFFF)) }

    /// When `tick` should be called next; nil when nothing is waited for.
    package var deadline: Timestamp<HostTime>? {
        var deadlines = queue.map(\.deadline)
        if let outstanding {
            deadlines.append(outstanding.sent + Self.transactionLimit)
            if !outstanding.isAbandoned { deadlines.append(outstanding.waiting.deadline) }
        }
        return deadlines.min()
    }

    /// Asks for an answer within `patience`.
    package mutating func request(
        _ packet: ATTPacket, patience: Interval, at now: Timestamp<HostTime>
    ) -> (RequestID, [Action]) {
        nextID += 1
        let id = nextID
        if let ended { return (id, [.answer(id, .failure(.disconnected(ended)))]) }
        guard queue.count < Self.mostWaiting else { return (id, [.answer(id, .failure(.busy))]) }
        queue.append(Waiting(id: id, packet: packet, deadline: now + patience, patience: patience))
        return (id, sendNext(at: now))
    }

    /// A packet that came in.
    package mutating func receive(_ bytes: [UInt8], at now: Timestamp<HostTime>) -> [Action] {
        guard ended == nil, let opcode = bytes.first else { return [] }
        switch ATTPacket.role(ofOpcode: opcode) {
        case .response: return response(opcode, bytes, at: now)
        case .request: return [.send(answer(toRequest: opcode, bytes))]
        case .notification, .indication: return delivery(opcode, bytes, at: now)
        case .confirmation, .command:
            strayPackets += 1
            return []
        }
    }

    /// The time is now.
    package mutating func tick(at now: Timestamp<HostTime>) -> [Action] {
        var actions: [Action] = []
        if let current = outstanding {
            if now >= current.sent + Self.transactionLimit {
                let name = Self.name(current.waiting.packet)
                return actions + end(.protocolFault("the device left \(name) unanswered for 30 s"))
            }
            if !current.isAbandoned && now >= current.waiting.deadline {
                outstanding?.isAbandoned = true
                actions.append(late(current.waiting))
            }
        }
        for waiting in queue where now >= waiting.deadline { actions.append(late(waiting)) }
        queue.removeAll { now >= $0.deadline }
        return actions
    }

    /// The bearer is gone.
    package mutating func end(_ reason: DisconnectReason) -> [Action] {
        guard ended == nil else { return [] }
        ended = reason
        var open = queue
        if let outstanding, !outstanding.isAbandoned { open.insert(outstanding.waiting, at: 0) }
        (queue, outstanding) = ([], nil)
        return open.map { .answer($0.id, .failure(.disconnected(reason))) } + [.breakLink(reason)]
    }

    // MARK: Parts

    private mutating func sendNext(at now: Timestamp<HostTime>) -> [Action] {
        guard outstanding == nil, !queue.isEmpty else { return [] }
        let next = queue.removeFirst()
        outstanding = (next, now, false)
        return [.send(next.packet.bytes)]
    }

    private mutating func response(_ opcode: UInt8, _ bytes: [UInt8], at now: Timestamp<HostTime>) -> [Action] {
        guard let current = outstanding else {
            strayPackets += 1
            return []
        }
        let asked = current.waiting.packet.opcode
        let packet = ATTPacket(bytes)
        let result: Result<ATTPacket, LowEnergyError>
        switch packet {
        case .errorResponse(let request, let handle, let code):
            guard request == asked else {
                strayPackets += 1
                return []
            }
            result = .failure(.refused(code, request: request, handle: handle))
        case let packet?:
            guard opcode == ATTPacket.response(toRequest: asked) else {
                strayPackets += 1
                return []
            }
            if case .exchangeMTUResponse(let theirs) = packet { agree(Int(theirs)) }
            result = .success(packet)
        case nil:
            // A response that can't be read still ends its request, when it is of its kind.
            guard opcode == ATTPacket.response(toRequest: asked) else {
                strayPackets += 1
                return []
            }
            result = .failure(.malformed("the device's answer to \(Self.name(current.waiting.packet)) is malformed"))
        }
        outstanding = nil
        let answer: [Action] = current.isAbandoned ? [] : [.answer(current.waiting.id, result)]
        return answer + sendNext(at: now)
    }

    /// The smaller one of both, and never below the default (Vol 3 Part F 3.4.2.2).
    private mutating func agree(_ theirs: Int) { mtu = max(Self.defaultMTU, min(ownMTU, theirs)) }

    /// This side has no attributes; what is asked of it all the same gets an answer, or the peer would wait 30 s.
    private mutating func answer(toRequest opcode: UInt8, _ bytes: [UInt8]) -> [UInt8] {
        switch ATTPacket(bytes) {
        case .exchangeMTURequest(let theirs):
            agree(Int(theirs))
            return ATTPacket.exchangeMTUResponse(UInt16(ownMTU)).bytes
        case .readByGroupTypeRequest(let handle, _, _), .readByTypeRequest(let handle, _, _),
            .findInformationRequest(let handle, _), .findByTypeValueRequest(let handle, _, _, _):
            return ATTPacket.errorResponse(request: opcode, handle: handle, code: .attributeNotFound).bytes
        case .readRequest(let handle), .readBlobRequest(let handle, _), .writeRequest(let handle, _):
            return ATTPacket.errorResponse(request: opcode, handle: handle, code: .invalidHandle).bytes
        default:
            return ATTPacket.errorResponse(request: opcode, handle: 0, code: .requestNotSupported).bytes
        }
    }

    private mutating func delivery(_ opcode: UInt8, _ bytes: [UInt8], at now: Timestamp<HostTime>) -> [Action] {
        switch ATTPacket(bytes) {
        case .notification(let handle, let value):
            return [.deliver(ATTPacket.Value(handle: handle, bytes: value), at: now)]
        case .multipleNotification(let values): return values.map { .deliver($0, at: now) }
        case .indication(let handle, let value):
            return [
                .send(ATTPacket.confirmation.bytes), .deliver(ATTPacket.Value(handle: handle, bytes: value), at: now),
            ]
        default:
            strayPackets += 1
            return opcode == 0x1D ? [.send(ATTPacket.confirmation.bytes)] : []
        }
    }

    private func late(_ waiting: Waiting) -> Action {
        .answer(
            waiting.id,
            .failure(.noAnswer(to: Self.name(waiting.packet), after: waiting.patience.seconds)))
    }

    private static func name(_ packet: ATTPacket) -> String {
        switch packet {
        case .exchangeMTURequest: "the request for the packet size"
        case .readRequest(let handle), .readBlobRequest(let handle, _): "the read of handle \(handle)"
        case .writeRequest(let handle, _), .prepareWriteRequest(let handle, _, _): "the write of handle \(handle)"
        case .executeWriteRequest: "the end of a long write"
        default: "a request of the discovery"
        }
    }
}
