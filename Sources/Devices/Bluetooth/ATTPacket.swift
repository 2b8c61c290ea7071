/// A packet of the attribute protocol (Core specification 5.4, Vol 3 Part F 3.4), both directions.
package enum ATTPacket: Sendable, Hashable {
    package struct Information: Sendable, Hashable {
        package var handle: UInt16
        package var type: BluetoothUUID

        package init(handle: UInt16, type: BluetoothUUID) {
            self.handle = handle
            self.type = type
        }
    }

    package struct Value: Sendable, Hashable {
        package var handle: UInt16
        package var bytes: [UInt8]

        package init(handle: UInt16, bytes: [UInt8]) {
            self.handle = handle
            self.bytes = bytes
        }
    }

    package struct Group: Sendable, Hashable {
        package var handle: UInt16
        package var end: UInt16
        package var bytes: [UInt8]

        package init(handle: UInt16, end: UInt16, bytes: [UInt8]) {
            self.handle = handle
            self.end = end
            self.bytes = bytes
        }
    }

    case errorResponse(request: UInt8, handle: UInt16, code: ATTErrorCode)
    case exchangeMTURequest(UInt16)
    case exchangeMTUResponse(UInt16)
    case findInformationRequest(first: UInt16, last: UInt16)
    case findInformationResponse([Information])
    case findByTypeValueRequest(first: UInt16, last: UInt16, type: UInt16, value: [UInt8])
    /// Groups without bytes.
    case findByTypeValueResponse([Group])
    case readByTypeRequest(first: UInt16, last: UInt16, type: BluetoothUUID)
    case readByTypeResponse([Value])
    case readRequest(UInt16)
    case readResponse([UInt8])
    case readBlobRequest(UInt16, offset: UInt16)
    case readBlobResponse([UInt8])
    case readByGroupTypeRequest(first: UInt16, last: UInt16, type: BluetoothUUID)
    case readByGroupTypeResponse([Group])
    case writeRequest(UInt16, [UInt8])
    case writeResponse
    case writeCommand(UInt16, [UInt8])
    case prepareWriteRequest(UInt16, offset: UInt16, [UInt8])
    case prepareWriteResponse(UInt16, offset: UInt16, [UInt8])
    case executeWriteRequest(commit: Bool)
    case executeWriteResponse
    case notification(UInt16, [UInt8])
    case multipleNotification([Value])
    case indication(UInt16, [UInt8])
    case confirmation

    package var opcode: UInt8 {
        switch self {
        case .errorResponse: 0x01
        case .exchangeMTURequest: 0x02
        case .exchangeMTUResponse: 0x03
        case .findInformationRequest: 0x04
        case .findInformationResponse: 0x05
        case .findByTypeValueRequest: 0x06
        case .findByTypeValueResponse: 0x07
        case .readByTypeRequest: 0x08
        case .readByTypeResponse: 0x09
        case .readRequest: 0x0A
        case .readResponse: 0x0B
        case .readBlobRequest: 0x0C
        case .readBlobResponse: 0x0D
        case .readByGroupTypeRequest: 0x10
        case .readByGroupTypeResponse: 0x11
        case .writeRequest: 0x12
        case .writeResponse: 0x13
        case .prepareWriteRequest: 0x16
        case .prepareWriteResponse: 0x17
        case .executeWriteRequest: 0x18
        case .executeWriteResponse: 0x19
        case .notification: 0x1B
        case .indication: 0x1D
        case .confirmation: 0x1E
        case .multipleNotification: 0x23
        case .writeCommand: 0x52
        }
    }

    /// What an opcode is, by table 3.43 of the specification and its bit 6 for commands.
    package enum Role: Sendable, Hashable { case request, response, command, notification, indication, confirmation }

    package static func role(ofOpcode opcode: UInt8) -> Role {
        switch opcode {
        case 0x1B, 0x23: .notification
        case 0x1D: .indication
        case 0x1E: .confirmation
        // Responses have odd numbers up to the execute write response; 0x21 answers 0x20 (read multiple, variable).
        case 0x01...0x19 where opcode & 1 == 1: .response
        case 0x21: .response
        case _ where opcode & 0x40 != 0: .command
        default: .request
        }
    }

    /// The opcode of the response to a request.
    package static func response(toRequest opcode: UInt8) -> UInt8 { opcode &+ 1 }
}

/// Why a server refuses a request (Vol 3 Part F 3.4.1.1).
package struct ATTErrorCode: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }

    package static let invalidHandle = ATTErrorCode(rawValue: 0x01)
    package static let readNotPermitted = ATTErrorCode(rawValue: 0x02)
    package static let writeNotPermitted = ATTErrorCode(rawValue: 0x03)
    package static let invalidPacket = ATTErrorCode(rawValue: 0x04)
    package static let insufficientAuthentication = ATTErrorCode(rawValue: 0x05)
    package static let requestNotSupported = ATTErrorCode(rawValue: 0x06)
    package static let invalidOffset = ATTErrorCode(rawValue: 0x07)
    package static let insufficientAuthorization = ATTErrorCode(rawValue: 0x08)
    package static let attributeNotFound = ATTErrorCode(rawValue: 0x0A)
    package static let attributeNotLong = ATTErrorCode(rawValue: 0x0B)
    package static let insufficientKeySize = ATTErrorCode(rawValue: 0x0C)
    package static let invalidLength = ATTErrorCode(rawValue: 0x0D)
    package static let unlikely = ATTErrorCode(rawValue: 0x0E)
    package static let insufficientEncryption = ATTErrorCode(rawValue: 0x0F)

    /// Whether a higher security of the link may help.
    package var asksForSecurity: Bool { [0x05, 0x08, 0x0C, 0x0F].contains(rawValue) }

    package var description: String {
        switch rawValue {
        case 0x01: "there is no such attribute"
        case 0x02: "it can't be read"
        case 0x03: "it can't be written"
        case 0x04: "the packet is malformed"
        case 0x05: "it asks for authentication: pair with it"
        case 0x06: "it doesn't support the request"
        case 0x07: "the offset is past the end"
        case 0x08: "it asks for authorization"
        case 0x09: "its queue of writes is full"
        case 0x0A: "no attribute was found"
        case 0x0B: "the attribute isn't long"
        case 0x0C: "the encryption key is too short"
        case 0x0D: "the value has the wrong length"
        case 0x0E: "an unlikely error"
        case 0x0F: "it asks for encryption: pair with it"
        case 0x10: "the attribute type is no grouping"
        case 0x11: "it has no resources left"
        case 0x80...0x9F: "the application's error \(rawValue)"
        case 0xFC: "the write was rejected"
        case 0xFD: "the client characteristic configuration is wrong"
        case 0xFE: "a procedure is under way already"
        case 0xFF: "the value is out of range"
        default: "error \(rawValue)"
        }
    }
}
