/// Finding out what a device has (Vol 3 Part G 4.4 to 4.7).
extension LowEnergyLink {
    /// A device that answers for ever must not be asked for ever.
    private static let mostServices = 64
    private static let mostCharacteristics = 256

    /// All primary services with their characteristics and descriptors.
    package func discover() async throws(LowEnergyError) -> [GATTService] {
        var services = try await primaryServices()
        for index in services.indices {
            services[index].characteristics = try await characteristics(in: services[index].handles)
        }
        return services
    }

    private func primaryServices() async throws(LowEnergyError) -> [GATTService] {
        var services: [GATTService] = []
        var first: UInt16 = 1
        while services.count < Self.mostServices {
            let packet = ATTPacket.readByGroupTypeRequest(first: first, last: 0xFFFF, type: GATTNumbers.primaryService)
            guard let answer = try await unlessAbsent(packet) else { break }
            guard case .readByGroupTypeResponse(let groups) = answer else { break }
            for group in groups {
                guard group.handle >= first, group.end >= group.handle,
                    let uuid = BluetoothUUID(littleEndian: group.bytes)
                else { throw .malformed("the device's list of services is out of order") }
                services.append(GATTService(uuid: uuid, handles: group.handle...group.end))
                guard group.end < 0xFFFF else { return services }
                first = group.end + 1
            }
        }
        return services
    }

    private func characteristics(in handles: ClosedRange<UInt16>) async throws(LowEnergyError) -> [GATTCharacteristic] {
        var found: [GATTCharacteristic] = []
        var first = handles.lowerBound
        search: while found.count < Self.mostCharacteristics {
            let packet = ATTPacket.readByTypeRequest(
                first: first, last: handles.upperBound, type: GATTNumbers.characteristic)
            guard let answer = try await unlessAbsent(packet) else { break }
            guard case .readByTypeResponse(let values) = answer else { break }
            for value in values {
                guard value.handle >= first, value.handle <= handles.upperBound,
                    let characteristic = GATTCharacteristic(declaration: value),
                    characteristic.handle <= handles.upperBound
                else { throw .malformed("the device's list of characteristics is out of order") }
                found.append(characteristic)
                guard value.handle < handles.upperBound else { break search }
                first = value.handle + 1
            }
        }
        for index in found.indices {
            let end = index + 1 < found.count ? found[index + 1].declaration - 1 : handles.upperBound
            guard found[index].handle < end else { continue }
            found[index].descriptors = try await descriptors(in: (found[index].handle + 1)...end)
        }
        return found
    }

    private func descriptors(
        in handles: ClosedRange<UInt16>
    ) async throws(LowEnergyError) -> [GATTCharacteristic.Descriptor] {
        var found: [GATTCharacteristic.Descriptor] = []
        var first = handles.lowerBound
        search: while found.count < Self.mostCharacteristics {
            let packet = ATTPacket.findInformationRequest(first: first, last: handles.upperBound)
            guard let answer = try await unlessAbsent(packet) else { break }
            guard case .findInformationResponse(let items) = answer else { break }
            for item in items {
                guard item.handle >= first, item.handle <= handles.upperBound else {
                    throw .malformed("the device's list of descriptors is out of order")
                }
                found.append(.init(uuid: item.type, handle: item.handle))
                guard item.handle < handles.upperBound else { break search }
                first = item.handle + 1
            }
        }
        return found
    }

    /// Nil when the device says that there is nothing (more).
    private func unlessAbsent(_ packet: ATTPacket) async throws(LowEnergyError) -> ATTPacket? {
        do { return try await request(packet) } catch {
            if case .refused(let code, _, _) = error, code == .attributeNotFound { return nil }
            throw error
        }
    }
}
