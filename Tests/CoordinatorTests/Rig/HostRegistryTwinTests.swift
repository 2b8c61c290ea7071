import Protocol
import Testing
import Timing
import Transport

@testable import Coordinator

@Suite("two machines with one name")
struct HostRegistryTwinTests {
    private let first = UniqueID.random()
    private let second = UniqueID.random()
    private let now = Timestamp<RigTime>(nanoseconds: 0)

    private func advertisement(_ uuid: UniqueID, port: UInt16 = 4000) -> AgentAdvertisement {
        AgentAdvertisement(
            hostUUID: uuid, host: HostID(unchecked: "cam"), key: CurveKeyPair.generate().publicKey.z85,
            commandPort: port, clockPort: 3)
    }

    private func welcome(_ uuid: UniqueID) -> Welcome {
        Welcome(
            hostUUID: uuid, host: HostID(unchecked: "cam"), version: "1", clockPort: 3, bulkPort: 2, clockKey: "")
    }

    @Test("a twin that is found while the first one's connection comes up keeps both out of the take")
    func whileConnecting() {
        var registry = HostRegistry()
        let (one, other) = (advertisement(first), advertisement(second))
        _ = registry.handle(.found(one), now: now)
        #expect(registry.handle(.judged(one, .known), now: now) == [.connect(one)])
        _ = registry.handle(.found(other), now: now)
        let actions = registry.handle(.judged(other, .known), now: now)
        #expect(actions.contains(.disconnect(first)))
        #expect(!actions.contains { if case .connect = $0 { true } else { false } })
        // The connection that was on its way comes up: it changes nothing.
        #expect(registry.handle(.welcomed(first, welcome(first)), now: now).isEmpty)
        for uuid in [first, second] {
            #expect(registry.entries[uuid]?.isAlive == false)
            guard case .twin = registry.entries[uuid]?.problem else {
                Issue.record("it should be refused")
                continue
            }
        }
        // More addresses of them are no news.
        var elsewhere = other
        elsewhere.commandPort = 4001
        _ = registry.handle(.found(elsewhere), now: now)
        #expect(registry.handle(.judged(elsewhere, .known), now: now).isEmpty)
        // The other one goes: the first is judged anew, and let in.
        #expect(registry.handle(.gone(second), now: now) == [.judge(one)])
        #expect(registry.handle(.judged(one, .known), now: now) == [.connect(one)])
    }
}
