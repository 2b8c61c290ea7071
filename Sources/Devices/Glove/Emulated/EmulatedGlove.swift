/// What an emulated glove is, and what goes wrong with it.
package struct GloveScript: Sendable, Hashable {
    /// What goes wrong at a moment; seconds since the glove was switched on.
    package struct Moment: Sendable, Hashable {
        package enum Fault: Sendable, Hashable {
            /// Ends the link, and can't be heard for so many seconds.
            case disconnect(down: Double)
            /// Sends nothing for so many seconds; what is sampled meanwhile is lost.
            case stall(Double)
            /// Its clock and its count begin anew.
            case restart
        }

        package var at: Double
        package var fault: Fault

        package init(at: Double, _ fault: Fault) {
            self.at = at
            self.fault = fault
        }
    }

    package var side: GloveSide
    /// 4, 5 or 6; 0 is the first glove with five sensors.
    package var schema = 5
    package var rate = 100.0
    package var samplesPerPacket = 3
    /// How much faster than the host's its clock runs.
    package var skewPPM = 0.0
    /// Of its clock when it is switched on, µs.
    package var counterStart: UInt32 = 0
    package var seed: UInt64 = 1
    /// Its name; nil for "OGLO LEFT" and so on.
    package var name: String?
    /// Percent.
    package var battery = 87

    /// Half of the time the air is blocked, for so many seconds at a time; what was held back comes together then.
    package var burst = 0.0
    /// Of the packets, how many of a hundred are lost, and how many are sent twice.
    package var lossPercent = 0.0
    package var duplicatePercent = 0.0
    /// The configuration says the other side than the name.
    package var saysWrongSide = false
    /// The configuration is cut off after 510 bytes.
    package var cutsConfiguration = false
    package var moments: [Moment] = []

    package init(side: GloveSide) { self.side = side }

    package var advertisedName: String { name ?? "OGLO \(side.rawValue.uppercased())" }
    package var saidSide: GloveSide { saysWrongSide ? (side == .left ? .right : .left) : side }

    /// What the glove says of itself, as compact as the real one does: below 512 bytes.
    package var configurationText: [UInt8] {
        let side = saidSide.rawValue
        let fingers = saidSide.fingers.map { "\"\($0)\"" }.joined(separator: ",")
        var parts = ["\"device\":\"OGLO\""]
        if schema > 0 { parts.append("\"schema_ver\":\(schema)") }
        parts += [
            "\"serial\":\"EMU-\(side.prefix(1).uppercased())-\(seed)\"", "\"side\":\"\(side)\"",
            "\"hw_rev\":\"RDR-02\"",
            "\"fw_rev\":\"0.9.12-emu\"", "\"rate_hz\":\(Int(rate))", "\"samples_per_packet\":\(samplesPerPacket)",
            "\"adc_bits\":12",
        ]
        if schema == 0 {
            let sensors = GloveSide.right.fingers.enumerated().map { index, finger in
                "{\"id\":\(index),\"loc\":\"\(finger)\",\"type\":\"fsr\",\"bits\":12}"
            }
            parts.append("\"channels\":[\(sensors.joined(separator: ","))]")
        } else {
            if schema >= 5 { parts.append("\"packet_format\":\"packed12_v\(schema)\"") }
            parts += [
                "\"stream_mode\":\"ble\"", "\"values_per_sample\":80", "\"sample_order\":[\"finger\",\"row\",\"col\"]",
                "\"sample_shape\":[5,4,4]",
            ]
            if cutsConfiguration {
                // What grew over the limit in the field: more fields before the channels.
                parts.append("\"factory_note\":\"\(String(repeating: "x", count: 240))\"")
            }
            parts += [
                "\"channels\":[\(fingers)]", "\"device_id\":\"emulated-\(seed)\"", "\"pair_id\":\"P1\"",
                "\"factory_passed\":true", "\"cal_valid\":true", "\"imu\":true",
            ]
        }
        let text = Array("{\(parts.joined(separator: ","))}".utf8)
        return cutsConfiguration ? Array(text.prefix(510)) : text
    }
}

/// The samples of an emulated glove as a function of their number, and their bytes.
package struct EmulatedGlove: Sendable {
    package let script: GloveScript

    package init(_ script: GloveScript) { self.script = script }

    package var taxels: Int { script.schema == 0 ? 5 : 80 }

    /// Seconds from being switched on to a sample, by the host's clock.
    package func time(of index: Int64) -> Double { Double(index) / (script.rate * (1 + script.skewPPM * 1e-6)) }

    /// The glove's clock at a sample, µs; it begins anew after 71.6 minutes.
    package func counter(of index: Int64) -> UInt32 {
        let micros = (Double(index) / script.rate * 1e6).rounded(.down)
        return script.counterStart &+ UInt32(truncatingIfNeeded: Int64(micros))
    }

    /// The first two taxels are the number of the sample, 12 bits each: a file tells which samples it has.
    package func values(of index: Int64) -> [Int32] {
        var values = (2..<Int64(taxels)).map { taxel in
            Int32(550 + (index * (taxel + 3) + Int64(script.seed % 97)) % 400)
        }
        values.insert(contentsOf: [Int32(index & 0xFFF), Int32(index >> 12 & 0xFFF)], at: 0)
        return values
    }

    package func imu(of index: Int64) -> [Int32] {
        [Int32(index % 2000) - 1000, -904, 4096, -2, Int32(index % 7), 3]
    }

    package func mag(of index: Int64) -> [Int32] { [-1345, Int32(index % 500), 9964] }

    /// The bytes of a notification with the samples from `first` on.
    package func packet(from first: Int64, count: Int) -> [UInt8] {
        func u16(_ value: Int32) -> [UInt8] {
            let bits = UInt16(truncatingIfNeeded: value)
            return [UInt8(bits & 0xFF), UInt8(bits >> 8)]
        }
        func u32(_ value: UInt32) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (8 * UInt32($0))) } }
        let base = counter(of: first)
        let sequence = UInt32(truncatingIfNeeded: first)
        var bytes: [UInt8]
        switch script.schema {
        case 0: bytes = u16(Int32(count)) + u32(base)
        case 4: bytes = [UInt8(clamping: count), 0x01] + u32(base)
        case 5: bytes = [UInt8(clamping: count), 0x04] + u32(sequence) + u32(base)
        default: bytes = [UInt8(clamping: count), 0x18] + u32(sequence) + u32(base)
        }
        for index in first..<first + Int64(count) {
            switch script.schema {
            case 0: bytes += values(of: index).flatMap(u16)
            case 4:
                bytes += values(of: index).flatMap(u16)
                bytes += ([100, -200] + imu(of: index)).flatMap(u16) + [1]
            default:
                bytes += u16(Int32(truncatingIfNeeded: counter(of: index) &- base))
                bytes += GlovePacket.pack(values(of: index)) + imu(of: index).flatMap(u16)
                if script.schema >= 6 { bytes += mag(of: index).flatMap(u16) + u16(-1500) }
            }
        }
        return bytes
    }

    /// One TAG frame of USB.
    package func frame(_ modality: GloveModality, number: Int64, counter: UInt32) -> [UInt8] {
        func little(_ value: UInt32, _ size: Int) -> [UInt8] {
            (0..<size).map { UInt8(truncatingIfNeeded: value >> (8 * UInt32($0))) }
        }
        let (type, payload): (UInt8, [UInt8])
        switch modality {
        case .tactile: (type, payload) = (1, GlovePacket.pack(values(of: number)))
        case .imu: (type, payload) = (2, imu(of: number).flatMap { little(UInt32(bitPattern: $0), 2) })
        case .mag: (type, payload) = (3, mag(of: number).flatMap { little(UInt32(bitPattern: $0), 2) })
        }
        return [0xA5, 0x5A, type] + little(UInt32(payload.count), 2)
            + little(UInt32(truncatingIfNeeded: number), 4) + little(counter, 4) + payload
    }
}
