/// The device's side of the attribute protocol: a table of attributes that answers requests.
///
/// Pure: a packet in, packets and events out. It is what an emulated device is made of; the product itself has no
/// attributes.
package struct ATTServer: Sendable {
    /// A characteristic as it is declared.
    package struct Characteristic: Sendable {
        package var uuid: BluetoothUUID
        package var properties: GATTCharacteristic.Properties
        package var value: [UInt8]

        package init(_ uuid: BluetoothUUID, _ properties: GATTCharacteristic.Properties, value: [UInt8] = []) {
            self.uuid = uuid
            self.properties = properties
            self.value = value
        }
    }

    package struct Service: Sendable {
        package var uuid: BluetoothUUID
        package var characteristics: [Characteristic]

        package init(_ uuid: BluetoothUUID, _ characteristics: [Characteristic]) {
            self.uuid = uuid
            self.characteristics = characteristics
        }
    }

    package enum Event: Sendable, Hashable {
        case written(BluetoothUUID, [UInt8])
        case subscribed(BluetoothUUID, Bool)
    }

    private struct Attribute: Sendable {
        var type: BluetoothUUID
        var value: [UInt8]
        var isReadable = true
        var isWritable = false
        /// The characteristic that it belongs to.
        var owner: BluetoothUUID?
        /// The last handle of the service that it declares.
        var groupEnd: UInt16?
    }

    package private(set) var mtu = ATTClient.defaultMTU
    private let ownMTU: Int
    /// Handle 1 is the first.
    private var attributes: [Attribute] = []
    private var prepared: [(handle: UInt16, offset: Int, value: [UInt8])] = []

    package init(_ services: [Service], ownMTU: Int = 517) {
        self.ownMTU = ownMTU
        for service in services {
            let start = attributes.count
            attributes.append(Attribute(type: GATTNumbers.primaryService, value: service.uuid.littleEndian))
            for characteristic in service.characteristics { add(characteristic) }
            attributes[start].groupEnd = UInt16(clamping: attributes.count)
        }
    }

    private mutating func add(_ characteristic: Characteristic) {
        let handle = UInt16(clamping: attributes.count + 2)
        let place = [UInt8(handle & 0xFF), UInt8(handle >> 8)]
        attributes.append(
            Attribute(
                type: GATTNumbers.characteristic,
                value: [characteristic.properties.rawValue] + place + characteristic.uuid.littleEndian))
        attributes.append(
            Attribute(
                type: characteristic.uuid, value: characteristic.value,
                isReadable: characteristic.properties.contains(.read),
                isWritable: !characteristic.properties.isDisjoint(with: [.write, .writeWithoutResponse]),
                owner: characteristic.uuid))
        guard !characteristic.properties.isDisjoint(with: [.notify, .indicate]) else { return }
        attributes.append(
            Attribute(
                type: GATTNumbers.clientConfiguration, value: [0, 0], isWritable: true, owner: characteristic.uuid))
    }

    // MARK: Values

    package mutating func set(_ value: [UInt8], of uuid: BluetoothUUID) {
        for index in attributes.indices where attributes[index].type == uuid { attributes[index].value = value }
    }

    /// A notification; nil when nobody has asked for it.
    package func notification(of uuid: BluetoothUUID, _ value: [UInt8]) -> [UInt8]? {
        guard isSubscribed(uuid), let index = attributes.firstIndex(where: { $0.type == uuid }) else { return nil }
        return ATTPacket.notification(UInt16(index + 1), Array(value.prefix(mtu - 3))).bytes
    }

    package func isSubscribed(_ uuid: BluetoothUUID) -> Bool {
        attributes.contains {
            $0.owner == uuid && $0.type == GATTNumbers.clientConfiguration
                && $0.value.first.map { $0 & 3 != 0 } ?? false
        }
    }

    /// A connection's own state ends with it: its packet size and its subscriptions.
    package mutating func disconnected() {
        mtu = ATTClient.defaultMTU
        prepared = []
        for index in attributes.indices where attributes[index].type == GATTNumbers.clientConfiguration {
            attributes[index].value = [0, 0]
        }
    }

    // MARK: Requests

    package mutating func receive(_ bytes: [UInt8]) -> (answers: [[UInt8]], events: [Event]) {
        guard let opcode = bytes.first else { return ([], []) }
        guard let packet = ATTPacket(bytes) else {
            let isRequest = ATTPacket.role(ofOpcode: opcode) == .request
            return isRequest ? (refuse(opcode, 0, .requestNotSupported), []) : ([], [])
        }
        switch packet {
        case .exchangeMTURequest(let theirs):
            mtu = max(ATTClient.defaultMTU, min(ownMTU, Int(theirs)))
            return ([ATTPacket.exchangeMTUResponse(UInt16(clamping: ownMTU)).bytes], [])
        case .readByGroupTypeRequest(let first, let last, let type): return (groups(first, last, type), [])
        case .readByTypeRequest(let first, let last, let type): return (values(first, last, type), [])
        case .findInformationRequest(let first, let last): return (information(first, last), [])
        case .findByTypeValueRequest(let first, let last, let type, let value):
            return (services(first, last, BluetoothUUID(type), value), [])
        case .readRequest(let handle): return (read(opcode, handle, offset: 0), [])
        case .readBlobRequest(let handle, let offset): return (read(opcode, handle, offset: Int(offset)), [])
        case .writeRequest(let handle, let value):
            guard let index = index(handle) else { return (refuse(opcode, handle, .invalidHandle), []) }
            guard attributes[index].isWritable else { return (refuse(opcode, handle, .writeNotPermitted), []) }
            return ([ATTPacket.writeResponse.bytes], write(index, value))
        case .writeCommand(let handle, let value):
            guard let index = index(handle), attributes[index].isWritable else { return ([], []) }
            return ([], write(index, value))
        case .prepareWriteRequest(let handle, let offset, let value):
            guard let index = index(handle), attributes[index].isWritable else {
                return (refuse(opcode, handle, .writeNotPermitted), [])
            }
            prepared.append((handle, Int(offset), value))
            return ([ATTPacket.prepareWriteResponse(handle, offset: offset, value).bytes], [])
        case .executeWriteRequest(let commit): return ([ATTPacket.executeWriteResponse.bytes], execute(commit))
        default: return ([], [])
        }
    }

    private func index(_ handle: UInt16) -> Int? {
        handle >= 1 && Int(handle) <= attributes.count ? Int(handle) - 1 : nil
    }

    private func refuse(_ opcode: UInt8, _ handle: UInt16, _ code: ATTErrorCode) -> [[UInt8]] {
        [ATTPacket.errorResponse(request: opcode, handle: handle, code: code).bytes]
    }

    private func range(_ first: UInt16, _ last: UInt16) -> Range<Int> {
        let start = max(0, Int(first) - 1)
        return start..<max(start, min(Int(last), attributes.count))
    }

    private func groups(_ first: UInt16, _ last: UInt16, _ type: BluetoothUUID) -> [[UInt8]] {
        var groups: [ATTPacket.Group] = []
        for index in range(first, last) where attributes[index].type == type {
            guard let end = attributes[index].groupEnd else { continue }
            let value = attributes[index].value
            let size = (groups.first?.bytes.count ?? value.count) + 4
            guard groups.isEmpty || value.count + 4 == size, 2 + size * (groups.count + 1) <= mtu else { break }
            groups.append(ATTPacket.Group(handle: UInt16(index + 1), end: end, bytes: value))
        }
        return groups.isEmpty
            ? refuse(0x10, first, .attributeNotFound) : [ATTPacket.readByGroupTypeResponse(groups).bytes]
    }

    private func values(_ first: UInt16, _ last: UInt16, _ type: BluetoothUUID) -> [[UInt8]] {
        var values: [ATTPacket.Value] = []
        for index in range(first, last) where attributes[index].type == type {
            let value = Array(attributes[index].value.prefix(min(253, mtu - 4)))
            let size = (values.first?.bytes.count ?? value.count) + 2
            guard values.isEmpty || value.count + 2 == size, 2 + size * (values.count + 1) <= mtu else { break }
            values.append(ATTPacket.Value(handle: UInt16(index + 1), bytes: value))
        }
        return values.isEmpty
            ? refuse(0x08, first, .attributeNotFound) : [ATTPacket.readByTypeResponse(values).bytes]
    }

    private func information(_ first: UInt16, _ last: UInt16) -> [[UInt8]] {
        var items: [ATTPacket.Information] = []
        for index in range(first, last) {
            let type = attributes[index].type
            let isShort = (items.first?.type ?? type).short != nil
            guard (type.short != nil) == isShort, 2 + (isShort ? 4 : 18) * (items.count + 1) <= mtu else { break }
            items.append(ATTPacket.Information(handle: UInt16(index + 1), type: type))
        }
        return items.isEmpty
            ? refuse(0x04, first, .attributeNotFound) : [ATTPacket.findInformationResponse(items).bytes]
    }

    private func services(_ first: UInt16, _ last: UInt16, _ type: BluetoothUUID, _ value: [UInt8]) -> [[UInt8]] {
        let groups = range(first, last).compactMap { index -> ATTPacket.Group? in
            guard attributes[index].type == type, attributes[index].value == value,
                let end = attributes[index].groupEnd
            else { return nil }
            return ATTPacket.Group(handle: UInt16(index + 1), end: end, bytes: [])
        }
        return groups.isEmpty
            ? refuse(0x06, first, .attributeNotFound) : [ATTPacket.findByTypeValueResponse(groups).bytes]
    }

    private func read(_ opcode: UInt8, _ handle: UInt16, offset: Int) -> [[UInt8]] {
        guard let index = index(handle) else { return refuse(opcode, handle, .invalidHandle) }
        guard attributes[index].isReadable else { return refuse(opcode, handle, .readNotPermitted) }
        let value = attributes[index].value
        guard offset <= value.count else { return refuse(opcode, handle, .invalidOffset) }
        let part = Array(value[offset...].prefix(mtu - 1))
        return [(opcode == 0x0A ? ATTPacket.readResponse(part) : .readBlobResponse(part)).bytes]
    }

    private mutating func write(_ index: Int, _ value: [UInt8]) -> [Event] {
        attributes[index].value = value
        guard let owner = attributes[index].owner else { return [] }
        return attributes[index].type == GATTNumbers.clientConfiguration
            ? [.subscribed(owner, value.first.map { $0 & 3 != 0 } ?? false)] : [.written(owner, value)]
    }

    private mutating func execute(_ commit: Bool) -> [Event] {
        let parts = prepared
        prepared = []
        guard commit else { return [] }
        var events: [Event] = []
        for handle in Set(parts.map(\.handle)).sorted() {
            guard let index = index(handle) else { continue }
            let value = parts.filter { $0.handle == handle }.sorted { $0.offset < $1.offset }.flatMap(\.value)
            events += write(index, Array(value.prefix(512)))
        }
        return events
    }
}
