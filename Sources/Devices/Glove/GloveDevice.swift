package import Protocol

/// One kind of rows of a glove as a stream.
///
/// Concurrency: all of it runs on the glove's thread; see `GloveSession`.
package struct GloveDevice: CaptureDevice {
    package let stream: StreamID
    package let hardware: String?
    private let modality: GloveModality
    private let session: GloveSession

    init(_ stream: StreamID, _ modality: GloveModality, of session: GloveSession, hardware: String?) {
        self.hardware = hardware
        self.stream = stream
        self.modality = modality
        self.session = session
    }

    package func open() async throws -> StreamDescription {
        do throws(GloveFault) { return try await session.open(modality, as: stream) } catch { throw words(error) }
    }

    package func start(_ sink: any SampleSink) async throws {
        do throws(GloveFault) { try await session.start(modality, sink) } catch { throw words(error) }
    }

    package func stop() async { await session.stop(modality) }

    package func close() async { await session.close(modality) }

    private func words(_ fault: GloveFault) -> DeviceError {
        DeviceError(fault.code, stream: stream, cause: fault.cause, cure: fault.cure)
    }
}
