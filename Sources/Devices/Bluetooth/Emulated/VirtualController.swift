package import Timing

/// A Bluetooth low-energy controller made of software, with emulated devices in its range.
///
/// It speaks HCI (Core specification 5.4, Vol 4 Part E) with the kernel's host: the commands of an adapter of version 4.2
/// that does low energy only. What devices send goes out at the next meeting of their connection's interval, as over the
/// air. It has no radio, so no packet is lost here; the devices lose theirs themselves.
///
/// Concurrency: used by one thread, which calls `receive` and `step`; `output` is called on it.
package final class VirtualController {
    /// The first byte of a packet between host and controller (Vol 4 Part A 2).
    enum PacketType: UInt8 {
        case command = 1
        case data = 2
        case event = 4
    }

    private final class Peer: PeripheralLink {
        let device: any EmulatedPeripheral
        let address: BluetoothAddress
        var connection: Connection?
        var wantsOut = false
        var nextReport = Timestamp<HostTime>(nanoseconds: 0)

        init(_ device: any EmulatedPeripheral, _ address: BluetoothAddress) {
            self.device = device
            self.address = address
        }

        func send(_ packet: [UInt8]) { connection?.outgoing.append(packet) }
        func disconnect() { wantsOut = true }
    }

    private struct Connection {
        let handle: UInt16
        var parameters: ConnectionParameters
        /// One of the meetings.
        var anchor: Timestamp<HostTime>
        var outgoing: [[UInt8]] = []
        /// The meeting at which these go out.
        var due: Timestamp<HostTime>?
        /// The pieces of an L2CAP frame that isn't whole.
        var incoming: [UInt8] = []
    }

    private static let reportInterval = Interval.milliseconds(50)
    private static let dataSize: UInt16 = 251
    private static let firstHandle: UInt16 = 0x40

    /// Called when an ATT packet of a device has been handed to the host: the proof of what the way from there takes.
    package var onDelivery: ((BluetoothAddress, _ packet: [UInt8], Timestamp<HostTime>) -> Void)?
    private let own: BluetoothAddress
    private let peers: [Peer]
    private let output: ([UInt8]) -> Void
    private var isScanning = false
    private var isActiveScan = false
    /// Whom the host wants to connect to, with the interval in units of 1.25 ms and the time-out in units of 10 ms.
    private var wanted: (address: BluetoothAddress, interval: UInt16, latency: UInt16, timeout: UInt16)?
    private var nextHandle = VirtualController.firstHandle

    /// - Parameters:
    ///   - own: the adapter's public address.
    ///   - devices: each with its address.
    ///   - output: packets for the host.
    package init(
        own: BluetoothAddress, devices: [(BluetoothAddress, any EmulatedPeripheral)],
        _ output: @escaping ([UInt8]) -> Void
    ) {
        self.own = own
        peers = devices.map { Peer($0.1, $0.0) }
        self.output = output
    }

    // MARK: From the host

    package func receive(_ packet: [UInt8], at now: Timestamp<HostTime>) {
        guard let type = packet.first.flatMap(PacketType.init) else { return }
        var reader = ByteReader(packet.dropFirst())
        switch type {
        case .command:
            guard let opcode = reader.u16(), let length = reader.u8(), let body = reader.bytes(Int(length)) else {
                return
            }
            command(opcode, body, at: now)
        case .data:
            guard let word = reader.u16(), let length = reader.u16(), let body = reader.bytes(Int(length)) else {
                return
            }
            data(handle: word & 0x0FFF, isContinued: word >> 12 & 3 == 1, body, at: now)
        case .event: break
        }
    }

    private func command(_ opcode: UInt16, _ body: [UInt8], at now: Timestamp<HostTime>) {
        var reader = ByteReader(body)
        switch opcode {
        case 0x0C03: reset(at: now)
        case 0x200B:
            isActiveScan = body.first == 1
            complete(opcode)
        case 0x200C:
            isScanning = body.first == 1
            for peer in peers { peer.nextReport = now }
            complete(opcode)
        case 0x200D: create(body, at: now)
        case 0x200E:
            complete(opcode, wanted == nil ? [0x0C] : [0])
            if wanted != nil { connectionFailed(0x02) }
        case 0x0406:
            guard let handle = reader.u16(), let peer = peer(handle) else { return status(opcode, 0x02) }
            status(opcode, 0)
            disconnect(peer, reason: 0x16, at: now)
        case 0x2013:
            guard let handle = reader.u16(), let least = reader.u16(), reader.u16() != nil, let latency = reader.u16(),
                let timeout = reader.u16(), let peer = peer(handle)
            else { return status(opcode, 0x02) }
            status(opcode, 0)
            let parameters = ConnectionParameters(intervalUnits: least, latency: latency, timeoutUnits: timeout)
            peer.connection?.parameters = parameters
            peer.connection?.anchor = now
            peer.connection?.due = nil
            event(0x3E, [0x03, 0] + Self.u16(handle) + Self.u16(least) + Self.u16(latency) + Self.u16(timeout))
        case 0x2016:
            guard let handle = reader.u16() else { return status(opcode, 0x12) }
            status(opcode, 0)
            event(0x3E, [0x04, 0] + Self.u16(handle) + [UInt8](repeating: 0, count: 8))
        case 0x041D:
            guard let handle = reader.u16() else { return status(opcode, 0x12) }
            status(opcode, 0)
            event(0x0C, [0] + Self.u16(handle) + [8] + Self.u16(0xFFFF) + Self.u16(0))
        default:
            if let answer = Self.answer(opcode, own: own) { complete(opcode, answer) } else { complete(opcode, [0x01]) }
        }
    }

    /// What is told of the controller, and commands that change nothing here.
    private static func answer(_ opcode: UInt16, own: BluetoothAddress) -> [UInt8]? {
        switch opcode {
        // Features: no BR/EDR, low energy.
        case 0x1003: [0, 0, 0, 0, 0, 0x60, 0, 0, 0]
        // Version 4.2 of HCI and of the link.
        case 0x1001: [0, 0x08] + u16(0) + [0x08] + u16(0xFFFF) + u16(0)
        case 0x1009: [0] + own.littleEndian
        // Commands beyond those that every adapter has: none.
        case 0x1002: [UInt8](repeating: 0, count: 65)
        case 0x1005: [0] + u16(dataSize) + [0] + u16(16) + u16(0)
        case 0x2002: [0] + u16(dataSize) + [16]
        case 0x2003: [UInt8](repeating: 0, count: 9)
        case 0x201C: [0] + [UInt8](repeating: 0xFF, count: 8)
        case 0x200F, 0x202A: [0, 8]
        case 0x2007: [0, 0]
        case 0x2018: [0] + (0..<8).map { _ in UInt8.random(in: 0...255) }
        // Event masks, random address, accept list and the like.
        case 0x0C01, 0x0C63, 0x0C6D, 0x0C14, 0x0C24, 0x2001, 0x2005, 0x2006, 0x2008, 0x2009, 0x200A, 0x2010, 0x2011,
            0x2012:
            [0]
        default: nil
        }
    }

    private func reset(at now: Timestamp<HostTime>) {
        for peer in peers where peer.connection != nil {
            peer.connection = nil
            peer.device.disconnected(at: now)
        }
        (isScanning, wanted) = (false, nil)
        complete(0x0C03)
    }

    private func create(_ body: [UInt8], at now: Timestamp<HostTime>) {
        var reader = ByteReader(body)
        guard reader.u16() != nil, reader.u16() != nil, let policy = reader.u8(), let kind = reader.u8(),
            let raw = reader.bytes(6), reader.u8() != nil, reader.u16() != nil, let most = reader.u16(),
            let latency = reader.u16(), let timeout = reader.u16(),
            let address = BluetoothAddress(littleEndian: raw, kind & 1 == 1 ? .random : .public)
        else { return status(0x200D, 0x12) }
        guard wanted == nil, policy == 0 else { return status(0x200D, wanted == nil ? 0x11 : 0x0C) }
        status(0x200D, 0)
        wanted = (address, most, latency, timeout)
        tryConnecting(at: now)
    }

    private func tryConnecting(at now: Timestamp<HostTime>) {
        guard let wanted,
            let peer = peers.first(where: {
                $0.address == wanted.address && $0.connection == nil && $0.device.isAdvertising(at: now)
            })
        else { return }
        self.wanted = nil
        let handle = nextHandle
        nextHandle = nextHandle >= 0xEFF ? Self.firstHandle : nextHandle + 1
        peer.wantsOut = false
        peer.connection = Connection(
            handle: handle,
            parameters: ConnectionParameters(
                intervalUnits: wanted.interval, latency: wanted.latency, timeoutUnits: wanted.timeout), anchor: now)
        let kind: UInt8 = wanted.address.kind == .random ? 1 : 0
        event(
            0x3E,
            [0x01, 0] + Self.u16(handle) + [0, kind] + wanted.address.littleEndian + Self.u16(wanted.interval)
                + Self.u16(wanted.latency) + Self.u16(wanted.timeout) + [0])
        peer.device.connected(peer, at: now)
    }

    private func connectionFailed(_ status: UInt8) {
        guard let wanted else { return }
        self.wanted = nil
        event(
            0x3E,
            [0x01, status] + Self.u16(0) + [0, wanted.address.kind == .random ? 1 : 0] + wanted.address.littleEndian
                + [UInt8](repeating: 0, count: 7))
    }

    private func disconnect(_ peer: Peer, reason: UInt8, at now: Timestamp<HostTime>) {
        guard let connection = peer.connection else { return }
        peer.connection = nil
        peer.wantsOut = false
        event(0x05, [0] + Self.u16(connection.handle) + [reason])
        peer.device.disconnected(at: now)
    }

    private func peer(_ handle: UInt16) -> Peer? { peers.first { $0.connection?.handle == handle } }

    // MARK: Data

    private func data(handle: UInt16, isContinued: Bool, _ body: [UInt8], at now: Timestamp<HostTime>) {
        guard let peer = peer(handle) else { return }
        event(0x13, [1] + Self.u16(handle) + Self.u16(1))
        var frame = isContinued ? (peer.connection?.incoming ?? []) + body : body
        peer.connection?.incoming = []
        var reader = ByteReader(frame)
        guard let length = reader.u16(), let channel = reader.u16() else { return }
        guard reader.remaining >= Int(length) else {
            if frame.count < 4096 { peer.connection?.incoming = frame }
            return
        }
        frame = reader.bytes(Int(length)) ?? []
        switch channel {
        case 4: peer.device.received(frame, at: now)
        // Signalling: what is asked there isn't understood (Vol 3 Part A 4.1).
        case 5 where frame.count >= 2 && frame[0] != 0x01: send(peer, channel: 5, [0x01, frame[1], 2, 0, 0, 0])
        // Pairing isn't supported (Vol 3 Part H 3.5.5).
        case 6: send(peer, channel: 6, [0x05, 0x05])
        default: break
        }
    }

    private func send(_ peer: Peer, channel: UInt16, _ payload: [UInt8]) {
        guard let handle = peer.connection?.handle else { return }
        let frame = Self.u16(UInt16(clamping: payload.count)) + Self.u16(channel) + payload
        // A first packet that may be flushed.
        output(
            [PacketType.data.rawValue] + Self.u16(handle | 0x2000) + Self.u16(UInt16(clamping: frame.count)) + frame)
    }

    // MARK: Time

    /// Does what is due, and says when the next thing is; nil when nothing is.
    package func step(at now: Timestamp<HostTime>) -> Timestamp<HostTime>? {
        var due: [Timestamp<HostTime>] = []
        for peer in peers {
            if let next = peer.device.step(at: now) { due.append(next) }
            if peer.wantsOut { disconnect(peer, reason: 0x13, at: now) }
            if let next = meet(peer, at: now) { due.append(next) }
            if let next = report(peer, at: now) { due.append(next) }
        }
        if wanted != nil {
            tryConnecting(at: now)
            due.append(now + Self.reportInterval)
        }
        return due.min()
    }

    /// What waits goes out at the next meeting; a device that has nothing is met without being told.
    private func meet(_ peer: Peer, at now: Timestamp<HostTime>) -> Timestamp<HostTime>? {
        guard let connection = peer.connection, !connection.outgoing.isEmpty else { return nil }
        guard let due = connection.due else {
            let interval = max(connection.parameters.interval.nanoseconds, 1_250_000)
            let meetings = (now - connection.anchor).nanoseconds / interval
            let next = connection.anchor + .nanoseconds((meetings + 1) * interval)
            peer.connection?.due = next
            return next
        }
        guard now >= due else { return due }
        peer.connection?.outgoing = []
        peer.connection?.due = nil
        for packet in connection.outgoing {
            send(peer, channel: 4, packet)
            onDelivery?(peer.address, packet, now)
        }
        return nil
    }

    private func report(_ peer: Peer, at now: Timestamp<HostTime>) -> Timestamp<HostTime>? {
        guard isScanning, peer.connection == nil else { return nil }
        guard now >= peer.nextReport else { return peer.nextReport }
        peer.nextReport = now + Self.reportInterval
        guard peer.device.isAdvertising(at: now) else { return peer.nextReport }
        let name = Array(peer.device.name.utf8.prefix(26))
        let data = [2, 0x01, 0x06, UInt8(name.count + 1), 0x09] + name
        emitReport(peer, type: 0, data)
        if isActiveScan, !peer.device.advertising.isEmpty { emitReport(peer, type: 4, peer.device.advertising) }
        return peer.nextReport
    }

    private func emitReport(_ peer: Peer, type: UInt8, _ data: [UInt8]) {
        let kind: UInt8 = peer.address.kind == .random ? 1 : 0
        // -50 dBm.
        event(
            0x3E,
            [0x02, 1, type, kind] + peer.address.littleEndian + [UInt8(clamping: data.count)] + data
                + [UInt8(bitPattern: -50)])
    }

    // MARK: To the host

    private func complete(_ opcode: UInt16, _ parameters: [UInt8] = [0]) {
        event(0x0E, [1] + Self.u16(opcode) + parameters)
    }

    private func status(_ opcode: UInt16, _ status: UInt8) { event(0x0F, [status, 1] + Self.u16(opcode)) }

    private func event(_ code: UInt8, _ parameters: [UInt8]) {
        output([PacketType.event.rawValue, code, UInt8(clamping: parameters.count)] + parameters)
    }

    private static func u16(_ value: UInt16) -> [UInt8] { [UInt8(value & 0xFF), UInt8(value >> 8)] }
}
