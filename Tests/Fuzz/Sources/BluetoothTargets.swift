internal import Devices
internal import Timing

extension FuzzTarget {
    static let bluetooth = [
        FuzzTarget(name: "att") { bytes in
            if let packet = ATTPacket(bytes) {
                demand(ATTPacket(packet.bytes) == packet, "an ATT packet reads back")
            }
            // The same bytes as what a device answers, and as what a central asks.
            var client = ATTClient(ownMTU: 517)
            var server = ATTServer([
                .init(
                    BluetoothUUID(0x180F),
                    [.init(BluetoothUUID(0x2A19), [.read, .write, .notify], value: [UInt8](repeating: 7, count: 40))])
            ])
            var now = Timestamp<HostTime>(nanoseconds: 1_000_000_000)
            for piece in pieces(bytes) {
                now += .milliseconds(10)
                _ = client.receive(piece, at: now)
                _ = client.tick(at: now)
                for answer in server.receive(piece).answers {
                    demand(answer.count <= server.mtu, "an answer fits the MTU")
                }
            }
        },
        FuzzTarget(name: "hci") { bytes in
            guard case .reports(let reports)? = HCIEvent(bytes) else { return }
            for report in reports {
                var advertisement = Advertisement(
                    peer: .radio(report.address), arrival: Timestamp(nanoseconds: 1_000_000_000))
                advertisement.add(data: report.data)
            }
        },
        FuzzTarget(name: "glove") { bytes in
            for configuration in gloves {
                guard let readings = try? GlovePacket.readings(bytes, configuration) else { continue }
                demand(readings.count <= bytes.count, "no more readings than bytes")
            }
        },
        FuzzTarget(name: "glove-configuration") { bytes in
            guard let configuration = try? GloveConfiguration(bytes) else { return }
            for modality in GloveModality.allCases { _ = configuration.channels(modality) }
            demand(configuration.rate.isFinite, "a rate is finite")
            _ = try? GlovePacket.readings(bytes, configuration)
        },
        FuzzTarget(name: "tag") { bytes in
            var reader = TagFrameReader()
            for piece in pieces(bytes) { _ = reader.append(piece) }
        },
    ]

    private static let gloves: [GloveConfiguration] = [0, 4, 5, 6].compactMap { schema in
        var script = GloveScript(side: .left)
        script.schema = schema
        return try? GloveConfiguration(script.configurationText, hint: .left)
    }
}
