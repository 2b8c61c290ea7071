/// A message with the id that ties an answer to its request, and its binary frames.
package struct Envelope: Sendable, Hashable {
    /// Made by the sender of a request; a repeated request carries the same id and is done once.
    package var command: UniqueID
    package var message: Message
    /// Bytes that are not JSON; only `chunkData` has one.
    package var attachments: [[UInt8]]

    package init(command: UniqueID = .random(), message: Message, attachments: [[UInt8]] = []) {
        self.command = command
        self.message = message
        self.attachments = attachments
    }

    /// The answer to this envelope.
    package func answer(_ message: Message, attachments: [[UInt8]] = []) -> Envelope {
        Envelope(command: command, message: message, attachments: attachments)
    }
}
