/**
 * Concepts: everyday words, English and Chinese, that mean about the same. What the hash embedder knows beyond spelling.
 *
 * Each line is one concept. A word may stand in several; it need not mean quite the same as its neighbours, only be what people
 * ask for with them. Chinese words have one or two characters, since that is how terms come.
 */
import { termsOf } from './terms.ts';

const CONCEPTS: readonly string[] = [
  // People
  'spouse wife husband partner married marry wedding 妻子 丈夫 老婆 老公 爱人 配偶 结婚 太太 先生 婚礼',
  'child kid son daughter baby toddler 孩子 儿子 女儿 小孩 宝宝 子女',
  'parent mother mom mum father dad 父母 妈妈 爸爸 母亲 父亲 爸妈',
  'sibling brother sister twin 兄弟 姐妹 哥哥 弟弟 姐姐 妹妹',
  'relative family grandmother grandfather grandparent aunt uncle cousin nephew niece 家人 亲戚 家庭 奶奶 爷爷 外婆 外公 姑姑 叔叔 舅舅 阿姨',
  'friend buddy pal mate roommate flatmate neighbour neighbor 朋友 好友 室友 邻居 闺蜜',
  'colleague coworker teammate team member 同事 团队 队友 组员',
  'boss manager lead supervisor director head chief reports 老板 经理 主管 领导 上司 组长 负责',
  'customer client buyer 客户 顾客 买家 甲方',
  'name called nickname alias surname 名字 姓名 叫做 昵称 称呼 外号 别名',
  'age old years birthday born birth 年龄 生日 出生 岁数 几岁 岁',
  'pet dog cat puppy kitten hamster parrot animal breed vet 宠物 狗 猫 小狗 小猫 仓鼠 鹦鹉 兽医 动物 品种',
  // Places and moving
  'home house live lives reside apartment flat address rent landlord 家 住 居住 房子 公寓 地址 住址 租房 房东 住在',
  'city town country hometown native from origin nationality 城市 国家 家乡 老家 故乡 国籍 籍贯',
  'move relocate moving 搬家 搬到 迁移 移居',
  'travel trip vacation holiday journey tour visit 旅行 旅游 出差 度假 假期 行程 旅程 出游',
  'flight fly plane airline airport seat aisle window 航班 飞机 航空 机场 座位 靠窗 过道',
  'train railway station metro subway rail 火车 高铁 地铁 铁路 车站',
  'car drive vehicle driving license motorbike scooter 汽车 开车 车辆 驾驶 驾照 轿车 摩托',
  'bicycle bike cycling cycle ride 自行 骑车 骑行 单车',
  'commute office workplace building floor desk 通勤 上班 办公 公司 工位 楼',
  'hotel lodging accommodation stay airbnb hostel 酒店 住宿 宾馆 旅馆 民宿',
  'weather rain climate temperature hot cold 天气 下雨 气温 温度 冷 热',
  // Food and body
  'food eat meal dish cuisine cooking cook recipe restaurant 吃 饭 食物 菜 做饭 烹饪 餐厅 美食 饮食 菜谱 饭馆 口味',
  'breakfast lunch dinner supper brunch meal 早餐 午餐 晚餐 早饭 午饭 晚饭 夜宵',
  'drink beverage tea coffee espresso latte juice milk water 喝 饮料 茶 咖啡 果汁 牛奶 奶茶 水 饮品',
  'alcohol wine beer whisky whiskey cocktail sober 酒 啤酒 红酒 白酒 喝酒 戒酒',
  'allergy allergic intolerant intolerance react 过敏 不耐 过敏源',
  'vegetarian vegan meat diet halal kosher 素食 吃素 肉 荤 清真 饮食',
  'fruit vegetable apple banana mango spicy sweet snack dessert 水果 蔬菜 苹果 香蕉 芒果 辣 甜 零食 甜点',
  'health illness disease condition doctor hospital clinic medical diagnosed 健康 疾病 医生 医院 看病 病 诊断 身体',
  'medicine medication pill dose drug prescription 药 药物 吃药 服药 药品 剂量',
  'injury pain surgery operation hurt broken knee back 受伤 疼 手术 骨折 膝盖 腰 疼痛',
  'sleep bed wake night insomnia early late 睡 睡觉 起床 失眠 早起 熬夜 晚睡 睡眠 几点',
  'teeth dentist tooth 牙 牙医 牙齿',
  'glasses eyes vision eyesight colour-blind colorblind 眼镜 视力 近视 眼睛 色盲',
  'height weight tall size shoe clothes wear shirt 身高 体重 尺码 鞋 衣服 穿 鞋码',
  // Leisure
  'hobby pastime leisure weekend spare enjoy fun 爱好 兴趣 业余 周末 休闲 消遣 空闲',
  'sport exercise fitness gym workout training run running swim swimming yoga hiking climbing marathon 运动 健身 锻炼 跑步 游泳 瑜伽 爬山 登山 徒步 马拉 训练',
  'ball football soccer basketball tennis badminton 足球 篮球 网球 羽毛 乒乓 打球 球队',
  'music song band singer instrument guitar piano violin play concert 音乐 歌 乐队 歌手 乐器 吉他 钢琴 提琴 弹 演唱 歌曲',
  'movie film cinema series show television director actor 电影 影片 剧 电视 导演 演员 看剧',
  'book read reading novel author writer library 书 读 阅读 小说 作者 作家 读书 图书',
  'game video console chess board 游戏 玩 棋 象棋 围棋 桌游',
  'art paint painting draw drawing photo photography camera 画 画画 绘画 摄影 照片 相机 拍照 艺术',
  'garden plant flower gardening grow 花园 植物 花 种 园艺 盆栽',
  // Mind and manner
  'like prefer favourite favorite love enjoy fond preference fan best 喜欢 偏好 最爱 爱 喜爱 偏爱 倾向',
  'dislike hate avoid against annoy annoyed cannot stand refuse 讨厌 不喜 避免 反感 厌恶 不爱 不想 不要 拒绝',
  'afraid fear phobia scared worry 害怕 恐惧 怕 担心',
  'goal plan aim want intend dream hope target resolution 目标 计划 打算 想要 梦想 希望 愿望',
  'habit routine usually daily every morning evening 习惯 每天 早上 晚上 日常 作息',
  'style tone format concise brief short verbose formal answer reply explain 风格 语气 格式 简洁 简短 详细 正式 回答 回复 解释',
  'language speak english chinese german french spanish japanese mandarin fluent 语言 说 英语 中文 德语 法语 日语 英文 汉语 西语 流利 母语',
  'religion church temple pray faith 宗教 信仰 教堂 寺庙 佛教',
  // Work, school and money
  'job work profession occupation career employed employer company role position title 工作 职业 公司 职位 岗位 上班 就职 任职 职务 雇主',
  'study student school university college degree major graduate graduated education course 学习 学生 学校 大学 学位 专业 毕业 教育 课程 就读 学历',
  'teacher teach tutor professor coach mentor instructor 老师 教 教师 教授 教练 导师 家教',
  'salary income pay money budget cost price spend afford cheap expensive 工资 收入 钱 预算 费用 价格 花费 成本 便宜 贵 薪水 花销',
  'bank account card payment invoice bill tax 银行 账户 卡 付款 发票 账单 税 报销 支付',
  'buy purchase order shop shopping store 买 购买 订单 购物 商店 下单',
  'contract legal lawyer law compliance 合同 法律 律师 法务 合规',
  'insurance policy pension mortgage loan savings 保险 养老 贷款 房贷 储蓄 存款',
  'exam test certificate certification qualification license 考试 证书 资格 认证 执照',
  // Time and order
  'meeting call standup sync appointment conference 会议 开会 例会 站会 约会 预约 会面',
  'calendar schedule date day when time hour 日程 时间 日期 安排 几号 点 时候 时刻',
  'deadline due until release launch ship 截止 期限 发布 上线 交付 发版',
  'week weekly monday tuesday wednesday thursday friday saturday sunday 每周 星期 周一 周二 周三 周四 周五 周六 周日 礼拜',
  'timezone zone utc time 时区',
  'email mail inbox message chat slack contact phone number reach 邮件 邮箱 消息 联系 电话 手机 微信 号码',
  // Software
  'code program programming developer engineer software coding 代码 编程 程序 开发 工程 软件 写码',
  'editor ide vim neovim emacs vscode code keyboard layout shortcut keymap 编辑 快捷 键盘 布局 键位',
  'laptop computer machine desktop mac windows linux operating os monitor screen 电脑 笔记 系统 主机 显示 屏幕',
  'phone mobile iphone android app tablet 手机 安卓 苹果 平板 应用',
  'shell terminal console command zsh bash fish 终端 命令',
  'database db postgres postgresql mysql sqlite sql mongo redis store storage 数据 存储 库',
  'cache caching redis memcached ttl expire expiry 缓存 过期',
  'server host hosting cloud aws gcp azure cluster kubernetes machine vm 服务 主机 云 集群 机器 托管',
  'deploy deployment release rollout rollback production pipeline ci build 部署 发布 上线 回滚 构建 流水 生产',
  'test testing tests unit suite framework coverage vitest jest pytest 测试 单测 用例 覆盖',
  'bug error issue crash failure incident outage problem fault broken 错误 故障 问题 崩溃 报错 失败 事故 宕机 缺陷',
  'fix fixed solve solved solution workaround resolve cause root 修复 解决 修 原因 办法 方案',
  'slow fast performance speed latency optimize memory leak 慢 快 性能 速度 延迟 优化 泄漏 卡',
  'log logging monitor monitoring alert dashboard metric metrics trace grafana prometheus 日志 监控 告警 报警 指标 面板',
  'repo repository git branch commit merge pull request review github gitlab 仓库 分支 提交 合并 评审 审查 版本',
  'package dependency library npm pnpm yarn install version upgrade 依赖 包 安装 升级 版本 管理',
  'indent indentation tab spaces format formatter prettier lint linter style naming convention quotes semicolon 缩进 空格 制表 格式 规范 命名 引号 分号',
  'api endpoint url route rest graphql grpc interface protocol 接口 端点 路由 地址 协议 网址',
  'port listen address host network vpn firewall dns proxy 端口 监听 网络 防火 代理 域名',
  'password secret key token credential login authentication auth sso 密码 密钥 登录 认证 令牌 凭证 鉴权',
  'frontend ui interface react vue css page website web browser theme dark 前端 界面 页面 网站 浏览 主题 深色 网页',
  'backend service microservice java golang python rust typescript language stack 后端 服务 语言 技术 编写',
  'file folder directory path located stored config configuration setting 文件 目录 路径 配置 位置 设置 放在 存放',
  'document docs documentation wiki readme note notes guide 文档 说明 笔记 手册 指南 维基',
  'backup restore snapshot copy retention 备份 恢复 快照 保留',
  'user login signup register account 用户 注册 账号',
  'project product codename repo feature roadmap 项目 产品 代号 功能 规划',
  'model llm ai prompt gpt claude training 模型 人工 智能 提示 训练',
  'schedule cron job nightly task queue worker batch 定时 任务 队列 夜间 批量',
  'environment staging dev production prod local 环境 预发 生产 本地 开发',
  'license open source mit apache gpl 许可 开源',
  'colour color red blue green black white 颜色 红 蓝 绿 黑 白 蓝色 红色 绿色 黑色 白色 紫色',
];

const BY_TERM: ReadonlyMap<string, readonly number[]> = indexConcepts();

/** The concepts that a term belongs to, by their numbers. */
export function conceptsOf(term: string): readonly number[] {
  return BY_TERM.get(term) ?? [];
}

function indexConcepts(): ReadonlyMap<string, readonly number[]> {
  const byTerm = new Map<string, number[]>();
  for (const [concept, line] of CONCEPTS.entries()) {
    for (const word of line.split(' ')) {
      // What a word is as a term, if it is one: pieces of words are no concepts.
      const terms = termsOf(word).filter(({ text, weight }) => weight === 1 || word.length === 1 || text === word);
      const [term] = terms.length === 1 ? terms : [];
      if (term === undefined) continue;
      const concepts = byTerm.get(term.text);
      if (concepts === undefined) byTerm.set(term.text, [concept]);
      else if (!concepts.includes(concept)) concepts.push(concept);
    }
  }
  return byTerm;
}
