/// Messages to the frames of a multipart ZeroMQ message, and back.
///
/// Frame 0, the header: 'D' 'B', version (1 byte), zero (1 byte), command id (16 bytes), kind (ASCII, at most 32 bytes).
/// Frame 1, the body: JSON, sorted keys. All further frames: binary. Unknown keys of a body are passed over; an unknown
/// kind is refused by its name.
package enum MessageCodec {
    package static let maximumBody = 1 << 20
    package static let maximumAttachment = 4 << 20
    package static let maximumAttachments = 4
    private static let headerSize = 20
    private static let maximumKind = 32

    package static func encode(_ envelope: Envelope) throws(ProtocolError) -> [[UInt8]] {
        let kind = envelope.message.kind.rawValue
        let header = [0x44, 0x42, ProtocolVersion.current, 0] + envelope.command.bytes + Array(kind.utf8)
        let body: [UInt8]
        do { body = try JSONText.encode(envelope.message.body) } catch {
            throw .malformed(kind: kind, reason: error.description)
        }
        let frames = [header, body] + envelope.attachments
        try checkSizes(frames)
        return frames
    }

    package static func decode(_ frames: [[UInt8]]) throws(ProtocolError) -> Envelope {
        let (command, name) = try header(of: frames)
        try checkSizes(frames)
        guard let kind = Message.Kind(rawValue: name) else { throw .unknownKind(name) }
        guard frames.count >= 2 else { throw .malformed(kind: name, reason: "the body is missing") }
        do {
            let message = try Message(kind: kind, body: frames[1])
            return Envelope(command: command, message: message, attachments: Array(frames.dropFirst(2)))
        } catch {
            throw .malformed(kind: name, reason: error.description)
        }
    }

    /// The command id and the kind's name of any message whose first frame is ours, for answering what can't be read.
    package static func header(of frames: [[UInt8]]) throws(ProtocolError) -> (UniqueID, String) {
        guard let header = frames.first, header.count > headerSize, header[0] == 0x44, header[1] == 0x42 else {
            throw .notDownbeat
        }
        guard header[2] == ProtocolVersion.current else { throw .wrongVersion(header[2]) }
        let name = header[headerSize...]
        guard name.count <= maximumKind, name.allSatisfy({ (0x21...0x7E).contains($0) }) else { throw .notDownbeat }
        return (UniqueID(bytes: Array(header[4..<20])), String(decoding: name, as: UTF8.self))
    }

    private static func checkSizes(_ frames: [[UInt8]]) throws(ProtocolError) {
        guard frames.count <= 2 + maximumAttachments else {
            throw .tooLarge(part: "the number of frames", bytes: frames.count, limit: 2 + maximumAttachments)
        }
        for (index, frame) in frames.enumerated().dropFirst() {
            let limit = index == 1 ? maximumBody : maximumAttachment
            guard frame.count <= limit else {
                throw .tooLarge(part: index == 1 ? "the body" : "a binary frame", bytes: frame.count, limit: limit)
            }
        }
    }
}
