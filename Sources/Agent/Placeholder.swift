// room Agent
