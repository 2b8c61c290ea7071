import Devices
import Platform
import Protocol
import TestSupport
import Testing
import Timing

/// Whole gloves over sockets: the real bytes, the real client, real time.
@Suite(.serialized) struct GloveLinkTests {
    /// Emulated gloves in one room.
    private final class Room: Sendable {
        let folder: TemporaryFolder
        let gloves: [SocketPeripheral]

        init(_ scripts: [GloveScript]) throws {
            let folder = try TemporaryFolder()
            self.folder = folder
            gloves = scripts.map { script in
                SocketPeripheral(path: "\(folder.path)/\(script.advertisedName) \(script.seed).sock") {
                    GlovePeripheral(script, at: HostClock.now)
                }
            }
        }

        func begin() async throws { for glove in gloves { try await glove.begin() } }
        func end() async { for glove in gloves { await glove.end() } }

        func suffer(_ index: Int, _ fault: GloveScript.Moment.Fault) async {
            await gloves[index].with { device in
                (device as? GlovePeripheral)?.suffer(fault, at: HostClock.now)
            }
        }

        func path(_ index: Int) -> String { gloves[index].path }
    }

    private static func device(
        _ text: String, in surroundings: Surroundings
    ) throws -> any CaptureDevice {
        var reader = try ConfigReader(file: "agent.json5", text: Array(text.utf8))
        return try DeviceCatalog.device(from: &reader, in: surroundings)
    }

    private static func surroundings() -> Surroundings { Surroundings(host: HostID(unchecked: "h")) }

    /// The number that an emulated glove writes into its first two taxels.
    private static func number(_ sample: Sample) -> Int {
        guard case .values(let values) = sample.payload, values.count >= 2 else { return -1 }
        return Int(values[0]) | Int(values[1]) << 12
    }

    private static func isInOrder(_ samples: [Sample]) -> Bool {
        zip(samples, samples.dropFirst()).allSatisfy {
            $0.capture <= $1.capture && number($0) < number($1)
                && ($0.device ?? .init(nanoseconds: 0)) < ($1.device ?? .init(nanoseconds: 0))
        }
    }

    @Test(.timeLimit(.minutes(2)), arguments: [0, 4, 5, 6]) func eachSchemaStreams(schema: Int) async throws {
        var script = GloveScript(side: .left)
        script.schema = schema
        // Three samples of schema 4 don't fit a packet.
        if schema == 4 { script.samplesPerPacket = 2 }
        script.counterStart = 4_294_967_295 - 300_000  // It begins anew within the first second.
        let room = try Room([script])
        try await room.begin()
        let surroundings = Self.surroundings()
        let text = "{id: 't', kind: 'oglo', side: 'left', address: 'unix:\(room.path(0))'"
        let tactile = try Self.device("\(text)}", in: surroundings)
        let imu = try Self.device(
            "\(text), rows: 'imu'}".replacingOccurrences("'t'", "'wrist_imu_left'"), in: surroundings)
        let description = try await tactile.open()
        #expect(description.nominalRate == 100)
        #expect(description.sensor?.channels.count == (schema == 0 ? 5 : 80))
        #expect(description.sensor?.channels.first?.name == (schema == 0 ? "thumb" : "pinky_0_0"))
        #expect(description.deviceIdentity.contains(room.path(0)))
        if schema > 0 {
            let other = try await imu.open()
            #expect(other.sensor?.channels.map(\.name) == ["ax", "ay", "az", "gx", "gy", "gz"])
        } else {
            await #expect(throws: DeviceError.self) { try await imu.open() }
        }
        let (first, second) = (EmulatedCollector(), EmulatedCollector())
        try await tactile.start(first)
        if schema > 0 { try await imu.start(second) }
        let content = await first.wait(forSamples: 100)
        await tactile.stop()
        #expect(Self.isInOrder(content.samples))
        let numbers = content.samples.map(Self.number)
        #expect(numbers == Array(numbers[0]..<numbers[0] + numbers.count))
        #expect(content.samples.allSatisfy { $0.capture <= $0.arrival })
        if schema > 0 {
            #expect(await second.wait(forSamples: 50).samples.count >= 50)
            await imu.stop()
        }
        let after = first.content.samples.count
        await imu.close()
        await tactile.close()
        #expect(first.content.samples.count == after)
        await room.end()
    }

    /// Both streams took the same glove once.
    ///
    /// Here each side its own, by what the gloves
    /// say of themselves, and whatever their names say.
    @Test(.timeLimit(.minutes(2))) func fault31_leftAndRightAreNeverConfused() async throws {
        var liar = GloveScript(side: .left)
        (liar.name, liar.seed) = ("OGLO RIGHT", 1)
        var right = GloveScript(side: .right)
        right.seed = 2
        let room = try Room([liar, right])
        try await room.begin()
        let surroundings = Self.surroundings()
        // An empty address is none.
        let place = "address: 'unix:\(room.folder.path)/'"
        let left = try Self.device("{id: 'l', kind: 'oglo', side: 'left', \(place)}", in: surroundings)
        let other = try Self.device("{id: 'r', kind: 'oglo', side: 'right', \(place)}", in: surroundings)
        async let first = left.open()
        async let second = other.open()
        let (a, b) = (try await first, try await second)
        #expect(a.deviceIdentity.contains("EMU-L-1") && b.deviceIdentity.contains("EMU-R-2"))
        #expect(a.sensor?.channels[0].name == "pinky_0_0" && b.sensor?.channels[0].name == "thumb_0_0")
        await left.close()
        await other.close()
        await room.end()
    }

    @Test func fault31_oneAddressForTwoGlovesIsRefused() throws {
        let surroundings = Self.surroundings()
        let text = "kind: 'oglo', address: 'C0:FF:EE:00:00:01'"
        _ = try Self.device("{id: 'a', side: 'left', \(text)}", in: surroundings)
        _ = try Self.device("{id: 'b', side: 'left', rows: 'imu', \(text)}", in: surroundings)
        for wrong in [
            "{id: 'c', side: 'right', \(text)}", "{id: 'c', side: 'left', \(text)}",
            "{id: 'c', side: 'right', kind: 'oglo', address: 'c0:ff:ee:00:00:01'}",
            "{id: 'c', side: 'left', kind: 'oglo', address: 'C0:FF:EE'}", "{id: 'c', kind: 'oglo'}",
        ] {
            #expect(throws: ConfigReader.Invalid.self, "\(wrong)") { try Self.device(wrong, in: surroundings) }
        }
    }

    @Test(.timeLimit(.minutes(2))) func fault31_theWrongHandIsRefusedWithItsCure() async throws {
        var script = GloveScript(side: .left)
        script.saysWrongSide = true
        let room = try Room([script])
        try await room.begin()
        let device = try Self.device(
            "{id: 'l', kind: 'oglo', side: 'left', address: 'unix:\(room.path(0))'}", in: Self.surroundings())
        let error = await #expect(throws: DeviceError.self) { try await device.open() }
        #expect(error?.cause.contains("is a right one") == true)
        #expect(error?.cure.contains("exchange the addresses") == true)
        await room.end()
    }

    @Test(.timeLimit(.minutes(2))) func fault32_aCutConfigurationStreams() async throws {
        var script = GloveScript(side: .left)
        script.cutsConfiguration = true
        let room = try Room([script])
        try await room.begin()
        let device = try Self.device(
            "{id: 'l', kind: 'oglo', side: 'left', address: 'unix:\(room.path(0))'}", in: Self.surroundings())
        let description = try await device.open()
        #expect(description.sensor?.channels.first?.name == "pinky_0_0" && description.label.contains("cut off"))
        await device.close()
        await room.end()
    }

    /// A link that breaks in the middle costs a marked gap and nothing else; so does a glove that falls silent.
    @Test(
        .timeLimit(.minutes(2)),
        arguments: [GloveScript.Moment.Fault.disconnect(down: 0.3), .stall(4)])
    func fault35_aLostLinkIsAMarkedGap(fault: GloveScript.Moment.Fault) async throws {
        var script = GloveScript(side: .right)
        script.duplicatePercent = 20
        let room = try Room([script])
        try await room.begin()
        let device = try Self.device(
            "{id: 'r', kind: 'oglo', side: 'right', address: 'unix:\(room.path(0))'}", in: Self.surroundings())
        _ = try await device.open()
        let collector = EmulatedCollector()
        try await device.start(collector)
        let before = await collector.wait(forSamples: 60).samples.count
        await room.suffer(0, fault)
        let content = await collector.wait { content in
            content.events.contains { if case .gap = $0 { true } else { false } } && content.samples.count > before + 60
        }
        await device.stop()
        let final = collector.content
        #expect(Self.isInOrder(content.samples))
        let gaps = content.events.compactMap { event -> (Timestamp<HostTime>, Timestamp<HostTime>, String)? in
            if case .gap(let from, let to, let cause) = event { (from, to, cause) } else { nil }
        }
        #expect(gaps.count == 1 && gaps[0].0 < gaps[0].1 && gaps[0].2.contains("link was lost"))
        // Nothing is missing outside of the gap.
        for (a, b) in zip(content.samples, content.samples.dropFirst()) where Self.number(b) != Self.number(a) + 1 {
            #expect(a.capture == gaps[0].0 && b.capture == gaps[0].1)
        }
        #expect(final.events.contains { if case .note(let text) = $0 { text.contains("came twice") } else { false } })
        #expect(!final.events.contains { if case .failed = $0 { true } else { false } })
        await device.close()
        await room.end()
    }

    @Test(.timeLimit(.minutes(2))) func lossesAreCountedExactly() async throws {
        var script = GloveScript(side: .right)
        script.lossPercent = 10
        let room = try Room([script])
        try await room.begin()
        let device = try Self.device(
            "{id: 'r', kind: 'oglo', side: 'right', address: 'unix:\(room.path(0))'}", in: Self.surroundings())
        _ = try await device.open()
        let collector = EmulatedCollector()
        try await device.start(collector)
        let content = await collector.wait(forSamples: 300)
        await device.stop()
        let numbers = content.samples.map(Self.number)
        let missing = numbers[numbers.count - 1] - numbers[0] + 1 - numbers.count
        let last = content.samples[content.samples.count - 1].capture
        let told = content.events.reduce(0) { sum, event in
            if case .lost(let count, let before) = event, content.samples[0].capture < before, before <= last {
                sum + Int(count)
            } else {
                sum
            }
        }
        #expect(missing > 0 && told == missing)
        await device.close()
        await room.end()
    }

    /// The glove's count goes on over takes; each file's rows are those of its own take.
    @Test(.timeLimit(.minutes(2))) func fault37_aSecondTakeBeginsAnew() async throws {
        let room = try Room([GloveScript(side: .right)])
        try await room.begin()
        let device = try Self.device(
            "{id: 'r', kind: 'oglo', side: 'right', address: 'unix:\(room.path(0))'}", in: Self.surroundings())
        _ = try await device.open()
        var last = -1
        for _ in 0..<2 {
            let collector = EmulatedCollector()
            try await device.start(collector)
            let content = await collector.wait(forSamples: 30)
            await device.stop()
            #expect(Self.number(content.samples[0]) > last)
            last = Self.number(content.samples[29])
            // What lies between two takes is no gap of either.
            #expect(content.events.isEmpty)
            // fault 40: nothing comes after the stop.
            let count = collector.content.samples.count
            _ = await device.stop()
            #expect(collector.content.samples.count == count)
        }
        await device.close()
        await room.end()
    }

    @Test(.timeLimit(.minutes(2))) func nobodyIsToldWithACure() async throws {
        let folder = try TemporaryFolder()
        let device = try Self.device(
            "{id: 'r', kind: 'oglo', side: 'right', address: 'unix:\(folder.path)/none.sock'}", in: Self.surroundings())
        let error = await #expect(throws: DeviceError.self) { try await device.open() }
        #expect(error?.code == .notFound && error?.cure.contains("switch the glove on") == true)
        await device.close()
    }
}

extension String {
    fileprivate func replacingOccurrences(_ old: String, _ new: String) -> String {
        split(separator: old, omittingEmptySubsequences: false).joined(separator: new)
    }
}
